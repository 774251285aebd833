"""The check of print finds what is there, counted by other code, and its page is in sync."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations

import pytest

from truepair.reproduce.published import checks
from truepair.reproduce.published.checks import contradicting, contradictions, method_of, wrong_sums
from truepair.reproduce.published.page import check_of_print
from truepair.reproduce.published.printed import RECALLS, all_rows, read_printed

ROWS = {row.name: row for row in all_rows()}


def test_sums_that_are_off_are_those_marked():
    assert {row.name for row in wrong_sums()} == {row.name for row in all_rows() if "sum differs" in row.checks}
    row = ROWS["CRCL:6:coco1k:0.8:BiCro-SAF"]
    assert row.sum_difference == pytest.approx(29.7)
    assert row.figures["rsum"] - row.sum_difference == pytest.approx(sum(row.figures[name] for name in RECALLS))


def equal_recalls(rows):
    """Groups of rows with the same six recalls, more than one each."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row.figures[name] for name in RECALLS)].append(row)
    return [group for group in groups.values() if len(group) > 1]


def test_rows_with_the_figures_of_another_cell_are_marked():
    """Of rows with equal recalls that are not quotations of one cell, a paper marks all but one."""
    for group in equal_recalls(checks.retrieval_rows()):
        cells = {(method_of(row), row.data, row.rate) for row in group}
        papers = Counter(row.paper for row in group)
        if len(cells) == 1 and max(papers.values()) == 1:
            continue
        marked = [row for row in group if row.checks.startswith(("repeated", "ok; restates"))]
        assert marked, [row.name for row in group]
        for paper, count in papers.items():
            assert sum(row.paper == paper for row in marked) >= count - 1, [row.name for row in group]


def test_rows_named_by_a_mark_have_the_same_figures():
    for row in all_rows():
        for other in ROWS:
            if f"{row.checks};".startswith((f"repeated from row {other} ", f"ok; restates row {other};")):
                assert dict(row.figures, rsum=0) == dict(ROWS[other].figures, rsum=0), row.name


def test_contradictions_are_those_of_all_pairs_of_rows():
    rows = checks.retrieval_rows()
    pairs = {
        (method_of(a), a.data, a.rate)
        for a, b in combinations(rows, 2)
        if (method_of(a), a.data, a.rate) == (method_of(b), b.data, b.rate) and a.figures != b.figures
    }
    found = contradictions()
    assert {(cell.method, cell.data, cell.rate) for cell in found} == pairs and len(found) == len(pairs) == 61
    assert sum(len(cell.papers) > 1 for cell in found) == 49
    assert sum(cell.of_captions for cell in found) == 32


def test_contradicting_rows_of_a_row():
    others = contradicting(ROWS["CRCL:1:f30k:0.6:NCR"])
    assert {row.name for row in others} == {
        "DisNCL:I:f30k:0.6:NCR",
        "DisNCL:II:f30k:0.6:NCR",
        "GSC:1:f30k:0.6:NCR-SGR",
    }
    assert contradicting(ROWS["CRCL:1:f30k:0.6:VSEinf"]) == []


def test_the_page_names_every_finding():
    page = check_of_print()
    assert "5 sums are off, 22 rows" in page and "61 cells" in page
    assert "| CRCL 6, MS-COCO 1K × 5, 80 %, BiCro-SAF | 368.9 | 339.2 | +29.7 |" in page
    assert "184.6 (DisNCL I, DisNCL II, GSC 1); 468.6 (CRCL 1)" in page


def test_another_figure_is_another_page(monkeypatch):
    """A sum that holds is not listed; one that does not hold any more is."""
    row = ROWS["CRCL:1:f30k:0.6:CRCL"]
    changed = replace(row, figures={**row.figures, "rsum": row.figures["rsum"] + 0.2})
    before = check_of_print()
    monkeypatch.setattr(checks, "all_rows", lambda: iter([changed, *(r for r in ROWS.values() if r != row)]))
    assert "CRCL 1, Flickr30K, 60 %, CRCL | 487.5 | 487.3 | +0.2" in check_of_print() and "487.5 | 487.3" not in before
    assert read_printed()["crcl-1"].rows  # the data are as they were
