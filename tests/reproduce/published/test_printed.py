"""The printed tables are complete, and shown as they are."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

import truepair.reproduce.published.printed as printed
import truepair.reproduce.published.views as views
from truepair.cli.main import main
from truepair.errors import InputError
from truepair.reproduce.published.printed import DATA, all_rows, printed_table, read_printed
from truepair.reproduce.published.views import elsewhere, marks, view_of


def test_every_row_of_the_files_is_in_one_table():
    lines = []
    for file in sorted(Path(printed.__file__).parent.glob("*.csv")):
        with file.open(newline="") as text:
            lines += [*csv.reader(text)][1:]
    rows = list(all_rows())
    assert len(rows) == len(lines) == 774 and sum(len(row.figures) for row in rows) == 4198
    assert all(table.rows for table in read_printed().values())
    assert {row.data for row in rows} == set(DATA)


def test_rows_hold_what_is_printed():
    (row,) = (
        row for row in printed_table("crcl-1").rows if (row.method, row.data, row.rate) == ("CRCL", "f30k", "0.6")
    )
    assert row.name == "CRCL:1:f30k:0.6:CRCL" and row.figures["rsum"] == 487.3 and row.noise == 0.6
    (row,) = (row for row in printed_table("disncl-3").rows if row.method == "NCR")
    assert row.noise is None and row.rate == "real" and row.doubt == ""
    (row,) = (row for row in printed_table("uot-rcl-2").rows if (row.method, row.rate) == ("MRL", "0.8"))
    assert row.figures == {"i2t_map": 0.435, "t2i_map": 0.4}


def test_rows_that_were_read_with_a_guess_are_doubtful_and_repeated_ones_are_not():
    doubts = {name: [row.doubt for row in printed_table(name).rows] for name in ("gsc-5", "disncl-5")}
    assert [doubt[:16] for doubt in doubts["gsc-5"]] == ["variant doubtful", "variant inferred", "variant doubtful", ""]
    assert sum(row.unclear for row in all_rows()) == 11 and any(doubts["disncl-5"])
    sound = [row for row in all_rows() if row.checks.startswith(("ok; restates", "ok; same", "ok; the text"))]
    assert len(sound) > 20 and not any(row.doubt for row in sound)


def test_figures_are_in_their_ranges_and_recall_grows():
    for row in all_rows():
        found = row.figures
        assert row.noise is None or 0 <= row.noise < 1
        if "rsum" in found:
            assert 0 <= found["i2t_r1"] <= found["i2t_r5"] <= found["i2t_r10"] <= 100, row.name
            assert 0 <= found["t2i_r1"] <= found["t2i_r5"] <= found["t2i_r10"] <= 100, row.name
        else:
            assert 0 < found["i2t_map"] < 1 and 0 < found["t2i_map"] < 1, row.name


def test_tables_are_listed_and_shown(capsys):
    assert main(["reproduce"]) == 0
    listed = capsys.readouterr().out
    assert all(re.search(rf"^{name} ", listed, re.M) for name in read_printed())
    assert main(["reproduce", "crcl-2"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^VSEinf +cc152k +real( +\d+\.\d){6} +229\.2 +!$", shown, re.M)
    assert "! VSEinf, cc152k, real: sum ok but t2i" in shown
    assert main(["reproduce", "uot-rcl-2"]) == 0
    assert re.search(r"^MRL +wikipedia +0\.8 +0\.435 +0\.400$", capsys.readouterr().out, re.M)


def test_what_other_tables_print_for_a_row_stands_below():
    shown = view_of(table := printed_table("crcl-1"), table.rows).splitlines()
    below = [line for line in shown if line.startswith("≠")]
    assert "≠ NCR, f30k, 0.4: rSum 467.1 in disncl-1, disncl-2, gsc-1" in below
    assert "≠ MSCN, f30k, 0.2: rSum 492.6 in disncl-1; rSum 502.1 in disncl-2" in below
    assert len(below) == sum("≠" in marks(row) for row in table.rows)


def test_equal_sums_of_other_recalls_name_the_recalls(monkeypatch):
    row = printed_table("crcl-1").rows[0]
    other = replace(row, figures={**row.figures, "i2t_r5": 1.0, "t2i_r1": 2.0})
    monkeypatch.setattr(views, "contradicting", lambda _: [other])
    assert elsewhere(row) == "i→t R@5 1.0, t→i R@1 2.0 in crcl-1"


def test_an_unknown_table_is_refused_with_those_there_are(capsys):
    assert main(["reproduce", "crcl-5"]) == 2
    assert "crcl-5 is no table that is known; there are disncl-1" in capsys.readouterr().err
    with pytest.raises(InputError):
        printed_table("")
