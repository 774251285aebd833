"""The grid trains what it says, skips what is done, and the report shows what the records hold."""

import json
import subprocess

import pytest

from truepair.errors import InputError
from truepair.reproduce import noise_grid, noise_report
from truepair.reproduce.noise_grid import Cell, cells_of, run_cell


def record(method, noise, seed, rsum, auroc=None):
    figures = {f"{way}_r{k}": rsum / 6 for way in ("i2t", "t2i") for k in (1, 5, 10)} | {"rsum": rsum}
    found = None if auroc is None else {"auroc": auroc, "average_precision": auroc, "division_accuracy": auroc}
    return {
        "cell": {"data": "toy", "method": method, "noise": noise, "seed": seed},
        "command": f"truepair train toy --method {method}",
        "date": "2026-01-02",
        "training_seconds": 1800.0,
        "result": {"test": figures, "detection": found},
    }


RECORDS = [
    record("infonce", 0.0, 0, 300.0),
    record("infonce", 0.0, 1, 310.0),
    record("infonce", 0.4, 0, 150.0, 0.8),
    record("oracle", 0.4, 0, 250.0),
    record("crcl", 0.4, 0, 240.0, 0.97),
    record("crcl", 0.4, 1, 250.0, 0.99),
]


def test_cells_cover_the_grid_once_and_share_the_clean_oracle():
    cells = cells_of("toy", ("infonce", "oracle"), (0.0, 0.4), (0, 1), 3)
    assert len(cells) == len({cell.name for cell in cells}) == 6
    assert not [cell for cell in cells if cell.method == "oracle" and cell.noise == 0]
    assert [cell.seed for cell in cells] == [0, 0, 0, 1, 1, 1]


def test_a_cell_is_trained_once_and_its_record_is_complete(tiny, tmp_path, monkeypatch):
    cell = Cell("tiny", "oracle", 0.4, 1, 1)
    monkeypatch.setattr(noise_grid, "WORD_SHARE", "0.1")
    small = [*cell.options(), "--width", "16", "--minimum-count", "1"]
    monkeypatch.setattr(Cell, "options", lambda self: small)
    results, runs = tmp_path / "results", tmp_path / "runs"
    results.mkdir()
    run_cell(cell, tiny, results, runs)
    kept = json.loads((results / f"{cell.name}.json").read_text())
    assert kept["command"] == " ".join(["truepair train tiny --method infonce --oracle", *small[3:]])
    assert kept["result"]["test"]["rsum"] > 0
    assert str(tmp_path) not in json.dumps(kept)

    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it is there already"))
    run_cell(cell, tiny, results, runs)
    monkeypatch.setattr(Cell, "options", lambda self: [*small, "--clip", "1"])
    with pytest.raises(InputError, match="another command"):
        run_cell(cell, tiny, results, runs)


def test_a_failing_cell_says_which_and_why(tmp_path):
    with pytest.raises(InputError, match="nowhere-crcl-noise40-seed0 failed: truepair: error: .*nowhere"):
        run_cell(Cell("nowhere", "crcl", 0.4, 0, 10), tmp_path / "nowhere", tmp_path, tmp_path / "runs")


def test_tables_show_mean_and_deviation():
    groups = noise_report.group(RECORDS)
    table = noise_report.value_table(groups, lambda r: r["result"]["test"]["rsum"], 1).splitlines()
    assert table[0] == "| | 0 % | 40 % |"
    assert table[2] == "| oracle (InfoNCE on the truly matched pairs) | 305.0 ± 7.1 | 250.0 |"
    assert table[3] == "| CRCL | – | 245.0 ± 7.1 |"
    ratios = noise_report.ratio_table(groups)
    assert "| CRCL: share of the oracle at the same noise | 98.0 % |" in ratios
    assert "| CRCL: share of InfoNCE without noise | 80.3 % |" in ratios
    assert "0.9800 ± 0.0141" in noise_report.full_report(RECORDS)
    assert "6 runs on `toy`, seeds 0, 1, 2026-01-02, 3.0 hours" in noise_report.short_report(RECORDS)


def test_only_the_marked_section_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- t: begin -->\nold\n<!-- t: end -->\nafter\n")
    noise_report.replace_section(page, "t", "new")
    assert page.read_text() == "before\n<!-- t: begin -->\n\nnew\n\n<!-- t: end -->\nafter\n"
    with pytest.raises(InputError, match="lacks the lines"):
        noise_report.replace_section(page, "other", "new")
    with pytest.raises(InputError, match="no records"):
        noise_report.read_records(tmp_path)
