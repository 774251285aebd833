"""`truepair.audit` from pairs to files: what it returns, what it writes, and that it goes on where it stopped."""

import json
import shutil

import numpy as np
import pytest

import truepair
from tests.audit.array_collection import ArrayCollection, random_pairs
from tests.audit.small_audits import (
    FILES,
    QUICK,
    QUICK_OPTIONS,
    contents,
    rows_of,
    run_cli,
    summary_of,
)
from truepair.audit import AuditOptions, CrossFitting
from truepair.audit.result import INDICATORS, Share
from truepair.audit.scoring import cross_fitting
from truepair.errors import InputError, RunFolderError


@pytest.fixture(scope="module")
def audited(tiny, tmp_path_factory):
    """An audit of the tiny data set through Python: the result and its folder."""
    out = tmp_path_factory.mktemp("audits") / "python"
    return truepair.audit(str(tiny), out, **QUICK_OPTIONS, progress=False), out


def test_truepair_audit_can_be_called_whatever_was_imported_before(tiny):
    """The function has the name of the room it lives in."""
    import truepair.audit.audit

    assert callable(truepair.audit) and callable(truepair.open)
    for _ in range(2):
        with pytest.raises(InputError, match="does not exist"):
            truepair.audit("nowhere")


def test_an_audit_shows_itself_in_one_line(audited):
    result, _ = audited
    share, flagged = result.verdict.share, int(result.verdict.flagged.sum())
    assert share == Share(result.verdict.noise_rate, result.verdict.noise_rate_low, result.verdict.noise_rate_high)
    for shown, first in (
        (result, f"AuditResult({result.collection.name!r}, scored by cross-fitting: "),
        (result.verdict, "Verdict("),
    ):
        assert repr(shown).startswith(f"{first}96 pairs, ") and repr(shown).endswith(f" {flagged} flagged)")


def test_all_files_hold_what_the_result_says(audited):
    result, out = audited
    assert {path.name for path in out.iterdir()} == {*FILES, "work"}
    rows, facts = rows_of(out), summary_of(out)
    assert {"pair_id", "p_match", "flagged", "reason", "similarity", "indicator_memory"} <= set(rows[0])
    assert [row["pair_id"] for row in rows] == [str(k) for k in range(96)]
    assert [row["p_match"] for row in rows] == result.verdict.p_match.tolist()
    assert (
        [row["flagged"] for row in rows] == result.verdict.flagged.tolist() == [p < 0.5 for p in result.verdict.p_match]
    )
    assert [row["caption"] for row in rows] == list(result.collection.pairs.texts.captions)
    assert all((row["reason"] != "") == row["flagged"] for row in rows)
    assert (facts["pairs"], facts["flagged"]) == (96, int(result.verdict.flagged.sum()))
    assert 0 <= facts["noise_rate_low"] <= facts["noise_rate"] <= facts["noise_rate_high"] <= 1
    assert facts["options"]["bank"] == 64 and facts["options"]["folds"] == 2
    assert set(facts["indicators"]) == set(INDICATORS), "tiny has two captions an image, and trains models"
    for values in result.indicators.values():
        assert values.dtype == np.float32 and values.min() >= 0 and values.max() <= 1
    assert facts["scores"] is None and "mismatched" not in rows[0]


def test_the_command_line_gives_the_same(audited, tiny, tmp_path, capsys):
    _, out = audited
    assert run_cli(tiny, tmp_path / "cli", *QUICK) == 0
    assert (tmp_path / "cli" / "pairs.parquet").read_bytes() == (out / "pairs.parquet").read_bytes()
    said = capsys.readouterr()
    assert "96 pairs" in said.out and str(tmp_path / "cli" / "report.html") in said.out
    assert said.err == ""
    theirs, ours = summary_of(tmp_path / "cli"), summary_of(out)
    assert theirs.pop("seconds").keys() == ours.pop("seconds").keys()
    assert theirs["options"].pop("source") == ours["options"].pop("source") == str(tiny)
    assert {name: theirs["options"][name] for name in ours["options"]} == ours["options"]
    del theirs["options"], ours["options"]
    assert theirs == ours


def test_a_finished_audit_is_repeated_from_what_is_there(audited, tiny, monkeypatch):
    """The same bytes, nothing trained or scored again; columns in the same order too."""
    _, out = audited
    before = contents(out)
    monkeypatch.setattr("truepair.audit.scoring.cross_fitting.fit", lambda *a, **o: pytest.fail("trained again"))
    monkeypatch.setattr("truepair.audit.scoring.scoring_folder.tensor_bytes", lambda *a: pytest.fail("scored again"))
    truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    after = contents(out)
    assert after["pairs.parquet"] == before["pairs.parquet"]
    assert {name for name in before if after[name] != before[name]} <= {"summary.json", "report.html"}  # times in them


def test_proposals_and_engine_may_change_and_nothing_else(audited, tiny):
    """Other pairs or options in the same folder are refused by name, and every file stays as it is."""
    _, out = audited
    before = contents(out)
    pairs, options, crossfit = truepair.load(tiny), QUICK_OPTIONS["options"], QUICK_OPTIONS["crossfit"]
    refused = [
        (pairs.take(np.arange(90)), {}, "of other pairs"),
        (pairs, {"options": AuditOptions(bank=32)}, "options.bank = 64, now it is 32"),
        (pairs, {"options": AuditOptions(bank=64, seed=1)}, "options.seed = 0, now it is 1"),
        (pairs, {"crossfit": CrossFitting(folds=3, epochs=2, width=16)}, "options.folds = 2, now it is 3"),
        (
            ArrayCollection(*random_pairs(80, 8)),
            {"crossfit": CrossFitting()},
            "scored_by = 'cross-fitting', now it is 'embeddings'",
        ),
    ]
    for data, change, message in refused:
        with pytest.raises(RunFolderError, match=f"holds an audit (with )?{message}; nothing was changed"):
            truepair.audit(data, out, **{"options": options, "crossfit": crossfit, **change}, progress=False)
    assert contents(out) == before
    again = truepair.audit(pairs, out, options=AuditOptions(bank=64, rematch=1), crossfit=crossfit, progress=False)
    assert len(again.rematch.rows) <= 1


def test_a_refused_audit_does_not_stand_in_the_way_of_the_corrected_one(tiny, tmp_path):
    """Seen with a method whose warm-up is longer than the training, and with more folds than images."""
    pairs, out = truepair.load(tiny), tmp_path / "out"
    refused = (
        (CrossFitting(method="disncl", epochs=1, width=16), "more epochs than the 5"),
        (CrossFitting(folds=1000), "cannot be dealt out to 1000 folds"),
    )
    for crossfit, message in refused:
        with pytest.raises(InputError, match=message):
            truepair.audit(pairs, out, crossfit=crossfit, progress=False)
        assert contents(out).keys() <= {"work/lock"}
    truepair.audit(pairs, out, **QUICK_OPTIONS, progress=False)


def test_refused_embeddings_do_not_stand_in_the_way_of_others(tmp_path):
    images, texts = random_pairs(80, 8)
    with pytest.raises(InputError, match="none of the 80 pairs can be scored"):
        truepair.audit(ArrayCollection(images, np.zeros_like(texts)), tmp_path / "out", progress=False)
    assert contents(tmp_path / "out").keys() <= {"work/lock"}
    truepair.audit(ArrayCollection(images, texts), tmp_path / "out", progress=False)


def test_what_was_trained_before_a_refusal_is_kept(tiny, tmp_path, monkeypatch):
    pairs, out, train_fold = truepair.load(tiny), tmp_path / "out", cross_fitting.train_fold

    def second_refused(folds, fold, *more, **named):
        if fold == 1:
            raise InputError("no second model")
        return train_fold(folds, fold, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(cross_fitting, "train_fold", second_refused)
        with pytest.raises(InputError, match="no second model"):
            truepair.audit(pairs, out, **QUICK_OPTIONS, progress=False)
    kept = {name for name in contents(out) if name.endswith("model.safetensors")}
    assert kept == {"work/crossfit/fold0/model.safetensors"} and (out / "work" / "audit.json").exists()
    truepair.audit(pairs, out, **QUICK_OPTIONS, progress=False)


def test_work_may_be_deleted_once_it_is_finished(tiny, tmp_path):
    """The same audit is made anew beside what was decided; another one is refused as if work/ were there."""
    out = tmp_path / "out"
    truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    (out / "decisions.sqlite").write_text("what people decided")
    shutil.rmtree(out / "work")
    before = contents(out)
    with pytest.raises(RunFolderError, match="holds an audit of other pairs; nothing was changed"):
        truepair.audit(truepair.load(tiny).take(np.arange(90)), out, **QUICK_OPTIONS, progress=False)
    assert contents(out) == before
    truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    after = contents(out)
    assert {name for name in before if after[name] != before[name]} <= {"summary.json", "report.html"}  # times in them
    shutil.rmtree(out / "work")
    older = {name: value for name, value in summary_of(out).items() if name != "identity"}
    (out / "summary.json").write_text(json.dumps(older))
    with pytest.raises(RunFolderError, match="holds no audit that can go on"):
        truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)


@pytest.mark.parametrize("kind", ["run", "file"])
def test_a_folder_of_something_else_is_never_written_to(tiny, tmp_path, kind):
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "pairs.parquet").write_text("what a run believes")
    with pytest.raises(RunFolderError, match="choose another --out|Choose another --out"):
        truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    assert (out if kind == "file" else out / "pairs.parquet").read_text() in ("mine", "what a run believes")


def test_leftovers_of_a_kill_are_removed(tiny, tmp_path):
    """Of the mark of the folder, of a table, of an export, and of the first file of a run."""
    out = tmp_path / "out"
    (out / "work" / "crossfit" / "fold0").mkdir(parents=True)
    (out / "work" / ".audit.json.12.tmp").write_text("{")
    (out / "work" / "crossfit" / "fold0" / ".config.json.12.tmp").write_text("{")
    truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    (out / ".pairs.parquet.12.tmp").write_text("PAR1")
    (out / ".export.12.tmp" / "own").mkdir(parents=True)
    truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    assert {path.name for path in out.iterdir()} == {*FILES, "work"}


def test_without_a_folder_nothing_is_left(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    result = truepair.audit(noisy, **QUICK_OPTIONS, progress=False)
    assert list(tmp_path.iterdir()) == []
    assert result.collection.pairs is noisy
    np.testing.assert_array_equal(result.mismatched, noisy.mismatched)
    assert 0 <= result.scores["auroc"] <= 1 and result.scores["noise_rate"] == noisy.mismatch_rate


def test_the_truth_changes_no_number(tiny):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    known, unknown = (
        truepair.audit(pairs, **QUICK_OPTIONS, progress=False) for pairs in (noisy, noisy.without_truth())
    )
    np.testing.assert_array_equal(known.verdict.p_match, unknown.verdict.p_match)
    assert unknown.scores is None


def test_options_in_the_summary_are_those_that_counted(tiny):
    options, crossfit = AuditOptions(bank=32, seed=3), CrossFitting(folds=2, epochs=1, width=16)
    result = truepair.audit(tiny, options=options, crossfit=crossfit, progress=False)
    assert (result.options["bank"], result.options["seed"], result.options["source"]) == (32, 3, str(tiny))


@pytest.mark.parametrize(
    "mark", [{"way": "cross-fitting", "pairs": "0" * 16, "run": None, "options": {}}, {"version": 1}]
)
def test_an_audit_that_an_older_version_began_is_refused_and_left_as_it_is(tiny, tmp_path, mark):
    out = tmp_path / "old"
    (out / "work").mkdir(parents=True)
    (out / "work" / "audit.json").write_text(json.dumps(mark))
    (out / "summary.json").write_text("what it found")
    before = contents(out)
    with pytest.raises(RunFolderError, match="another version of truepair, whose scores cannot be read; nothing was"):
        truepair.audit(truepair.load(tiny), out, **QUICK_OPTIONS, progress=False)
    assert {name: contents(out)[name] for name in before} == before
