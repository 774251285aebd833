"""The documentation shows what the records hold, and nothing else."""

import json
import shutil
from pathlib import Path

import pytest

from truepair.errors import InputError
from truepair.reproduce.render.markdown import of_versions
from truepair.reproduce.report import PRINT, put_text, report
from truepair.reproduce.tables import read_specs

ROOT = Path(__file__).parents[2]
TABLES, SECTIONS = read_specs()


@pytest.fixture
def copy(tmp_path):
    pages = (section.options["page"] for section in SECTIONS if "page" in section.options)
    drawn = (section for section in SECTIONS if "picture" in section.options)
    pictures = (Path(section.file).with_name(section.options["picture"]) for section in drawn)
    for file in {"README.md", *pictures, *pages, *(section.file for section in SECTIONS)}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    shutil.copytree(ROOT / "docs" / "methods", tmp_path / "docs" / "methods")
    shutil.copy(ROOT / "docs" / "methods.md", tmp_path / "docs" / "methods.md")
    shutil.copytree(ROOT / "results", tmp_path / "results")
    return tmp_path


def test_docs_and_records_agree():
    assert report(ROOT, [*TABLES, PRINT], check=True) == [], "run python -m truepair.reproduce report"


def test_figures_changed_by_hand_are_found_and_put_right(copy):
    """One in each section; of those that have no run yet, a word."""
    before = {copy / section.file: (copy / section.file).read_text() for section in SECTIONS}
    for section in SECTIONS:
        path = copy / section.file
        text = path.read_text()
        start = text.index(f"<!-- {section.marker}: begin -->")
        inside = text[start : text.index(f"<!-- {section.marker}: end -->")]
        if section.awaits_runs and "No run yet" in inside:
            path.write_text(text[:start] + inside.replace("No run", "Some runs") + text[start + len(inside) :])
            continue
        digit = next(i for i in range(start, len(text)) if text[i].isdigit() and text[i - 1] == ".")
        path.write_text(text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :])
    found = report(copy, [*TABLES], check=True)
    expected = [f"{copy / section.file}, {section.marker}: " for section in SECTIONS]
    assert [change[: len(start)] for change, start in zip(found, expected, strict=True)] == expected
    report(copy, [*TABLES])
    assert {path: path.read_text() for path in before} == before


def test_a_record_changed_by_hand_is_found(copy):
    path = copy / "results" / "labels.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    record = json.loads(first)
    record["result"]["test"]["map_i2t"] += 0.1
    path.write_text(json.dumps(record) + "\n" + "".join(rest))
    assert len(report(copy, [*TABLES], check=True)) == 1


def test_records_of_another_version_are_named_under_the_tables_that_hold_them(copy):
    path = copy / "results" / "noise.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    record = json.loads(first)
    path.write_text(json.dumps({**record, "truepair": "0.0.9"}) + "\n" + "".join(rest))
    report(copy, ["noise", "grand"])
    said = f"° 1 run of truepair 0.0.9 (`{record['name']}`). All others are of 0.1.0."
    for file in ("README.md", "docs/results/products.md"):
        assert said in (copy / file).read_text() and said not in (ROOT / file).read_text()


def test_the_newest_version_counts_as_number_and_many_runs_are_counted():
    records = [{"name": f"run{k}", "truepair": "0.10.0" if k else "0.9.2"} for k in range(3)]
    assert of_versions(records) == "° 1 run of truepair 0.9.2 (`run0`). All others are of 0.10.0."
    many = [{"name": f"run{k}", "truepair": "0.1" if k < 20 else "0.2"} for k in range(30)]
    assert of_versions(many) == "° 20 runs of truepair 0.1. All others are of 0.2."
    assert of_versions(many[:20]) == of_versions([{"name": "of no version"}]) == ""


def test_the_picture_is_drawn_anew_for_other_records(copy):
    picture, here = (folder / "docs" / "results" / "audit-estimate.png" for folder in (copy, ROOT))
    before = here.read_bytes()
    path = copy / "results" / "audit.jsonl"
    path.write_text(path.read_text().replace('"estimate": 0.', '"estimate": 0.1', 1))
    assert f"{picture}: it shows other records" in report(copy, ["audit"], check=True)
    assert picture.read_bytes() == before
    report(copy, ["audit"])
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.read_bytes() != before
    assert report(copy, ["audit"], check=True) == []


def test_records_that_are_missing_or_of_no_cell_are_refused(copy):
    path = copy / "results" / "labels.jsonl"
    path.write_text(path.read_text() + '{"name": "z", "command": "x", "cell": {}}\n')
    with pytest.raises(InputError, match="holds z, which is no run of the table"):
        report(copy, ["labels"])
    path.unlink()
    with pytest.raises(InputError, match="reproduce run labels first"):
        report(copy, ["labels"])


def test_only_the_marked_section_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- t: begin -->\nold\n<!-- t: end -->\nafter\n")
    assert put_text(page, "t", "new") == [f"{page}, t: old"]
    assert page.read_text() == "before\n<!-- t: begin -->\n\nnew\n\n<!-- t: end -->\nafter\n"
    assert put_text(page, "t", "new") == []
    for file, marker in ((page, "other"), (tmp_path / "none.md", "t")):
        with pytest.raises(InputError, match="lacks the lines"):
            put_text(file, marker, "new")


def test_figures_in_the_prose_of_the_readme_are_those_of_the_records():
    """They stand in sentences, which no command writes."""
    from statistics import fmean

    from truepair.reproduce.records import read_records

    audits = {record["name"]: record for record in read_records(ROOT / "results" / "audit.jsonl")}
    embedded = read_records(ROOT / "results" / "audit-embeddings.jsonl")

    def of_fashion(figure):
        found = (audits[f"fashion-random{rate}-seed0"]["rows"]["verdict"][figure] for rate in (0, 20, 40))
        return " / ".join(f"{100 * value:.1f}" for value in found)

    def auroc_of_fashion(rate):
        return f"{audits[f'fashion-random{rate}-seed0']['rows']['verdict']['auroc']:.3f}"

    def of_photographs(rate):
        found = [audit for record in embedded for audit in record["audits"] if audit["kind"] == "random"]
        return [audit for audit in found if audit["noise"] == rate]

    def estimate(rate):
        return f"{fmean(100 * audit['estimate'][0] for audit in of_photographs(rate)):.1f}"

    def auroc(rate):
        return f"{fmean(audit['auroc'] for audit in of_photographs(rate)):.3f}"

    text = " ".join((ROOT / "README.md").read_text().split())
    rates = (0.1, 0.2, 0.4)
    assert f"| {estimate(0.0)} / {' / '.join(map(estimate, rates))} % | – / {' / '.join(map(auroc, rates))} |" in text
    found = f"| {of_fashion('estimate')} %, flagged {of_fashion('flagged')} % | –"
    assert f"{found} / {auroc_of_fashion(20)} / {auroc_of_fashion(40)} |" in text
    (retrained,) = read_records(ROOT / "results" / "audit-retrain.jsonl")
    kept, matched, every = (f"{retrained[row]['test']['rsum']:.1f}" for row in ("kept", "truly matched", "all"))
    assert f"rSum of {kept}; on the truly matched pairs it is {matched}, on all of them {every}" in text


def test_a_section_that_awaits_runs_says_so(tmp_path):
    """Until there are some; a table that had runs is never replaced by that."""
    page = tmp_path / "docs" / "results" / "labels.md"
    page.parent.mkdir(parents=True)
    markers = [f"<!-- as printed{others} table: {end} -->" for others in ("", " others") for end in ("begin", "end")]
    page.write_text("\n".join(markers))
    assert len(report(tmp_path, ["labels-as-printed-others"])) == 1
    assert "No run yet: `python -m truepair.reproduce run labels-as-printed-others`." in page.read_text()
    assert report(tmp_path, ["labels-as-printed-others"], check=True) == []


def test_a_figure_of_records_is_drawn_anew_where_they_differ(copy):
    """Where it stands in the documentation, with its table alone; one of runs is left as it is."""
    drawn = ROOT / "docs" / "figures"
    figures = copy / "docs" / "figures"
    figures.mkdir(parents=True)
    for name in ("crcl-3a", "crcl-3b", "disncl-4"):
        shutil.copy(drawn / f"{name}.json", figures)
    before = json.loads((figures / "crcl-3a.json").read_text())
    for name in ("crcl-3a", "disncl-4"):
        (figures / f"{name}.json").write_text(json.dumps(before | {"numbers": {}}))
    assert report(copy, ["labels"], check=True) == []
    assert report(copy, ["crcl-sweeps"], check=True) == [f"{figures / 'crcl-3a.svg'}: it shows other records"]
    assert sorted(path.name for path in figures.iterdir()) == ["crcl-3a.json", "crcl-3b.json", "disncl-4.json"]
    assert len(report(copy, ["crcl-sweeps"])) == 1
    assert json.loads((figures / "crcl-3a.json").read_text()) == before
    assert (figures / "crcl-3a.svg").exists() and (figures / "crcl-3a.png").exists()
    assert report(copy, ["crcl-sweeps"]) == []
