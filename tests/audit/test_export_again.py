"""An export that lies there already: taken for this one where it was made alike, `work/` or not; never changed."""

import shutil

import pytest

import truepair
from tests.audit.small_audits import QUICK_OPTIONS, contents
from truepair.audit import AuditOptions
from truepair.errors import InputError


@pytest.fixture(scope="module")
def exported(tiny, tmp_path_factory):
    """An audit with an export, of which `work/` was deleted."""
    out = tmp_path_factory.mktemp("exported") / "out"
    truepair.audit(str(tiny), out, **QUICK_OPTIONS, export=["csv", "ids"], progress=False)
    shutil.rmtree(out / "work")
    return out


@pytest.fixture
def out(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "out")


def again(tiny, out, **changes):
    return truepair.audit(str(tiny), out, **{**QUICK_OPTIONS, "export": ["csv"], "progress": False, **changes})


def test_the_same_call_goes_on_beside_its_export_after_work_was_deleted(tiny, out):
    (out / "export" / "mine.txt").write_text("a note of somebody")
    before = contents(out / "export")
    again(tiny, out)
    assert contents(out / "export") == before and (out / "work").is_dir()


def test_an_export_of_other_options_is_told_by_itself_after_work_was_deleted(tiny, out, tmp_path):
    (tmp_path / "decided.csv").write_text("pair_id,verdict\n3,match\n")
    before = contents(out)
    with pytest.raises(InputError, match=r"made with keep = 0\.8, now it is 0\.5; move it away"):
        again(tiny, out, options=AuditOptions(bank=64, keep=0.5))
    with pytest.raises(InputError, match="made with other decisions; move it away"):
        again(tiny, out, decisions=tmp_path / "decided.csv")
    with pytest.raises(InputError, match="exists already, without jsonl; move it away"):
        again(tiny, out, export=["jsonl"])
    assert contents(out) == before


def test_an_export_that_was_moved_away_and_back_still_says_what_it_is(tiny, out):
    (out / "export").rename(out.parent / "aside")
    wide = AuditOptions(bank=64, keep=0.5)
    again(tiny, out, options=wide)
    (out / "export").rename(out.parent / "wide")
    (out.parent / "aside").rename(out / "export")
    with pytest.raises(InputError, match=r"made with keep = 0\.8, now it is 0\.5"):
        again(tiny, out, options=wide)
    again(tiny, out)


def test_an_export_of_an_earlier_version_is_known_by_what_work_says(tiny, out):
    """That kept what it was made with in `work/`; where nothing says it any more, the audit does not guess."""
    (out / "export" / "made_with.json").unlink()
    before = contents(out)
    with pytest.raises(InputError, match="nothing there says what it was made with; move it away to export anew"):
        again(tiny, out)
    assert contents(out) == before
    exported = contents(out / "export")
    (out / "work").mkdir()
    (out / "work" / "export.json").write_text('{"keep": 0.8, "decisions": null}')
    again(tiny, out)
    assert contents(out / "export") == exported
