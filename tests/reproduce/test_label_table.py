"""The grid of label noise trains what it says, and the report shows what the records hold."""

import json

import pytest

from truepair.reproduce import label_grid, label_report
from truepair.reproduce.grid import train_cell
from truepair.reproduce.label_grid import LabelCell, cells_of


def record(method, noise, seed, score, right, given=0.64):
    return {
        "cell": {"data": "toy", "method": method, "noise": noise, "seed": seed},
        "command": f"truepair train toy --method {method}",
        "date": "2026-01-02",
        "training_seconds": 1800.0,
        "result": {
            "test": {"map_i2t": score, "map_t2i": score - 0.1, "map": score - 0.05},
            "labels": {"corrected_accuracy": right, "given_accuracy": given},
        },
    }


RECORDS = [
    record("ce", 0.4, 0, 0.30, 0.70),
    record("ce", 0.4, 1, 0.32, 0.72),
    record("uot-rcl", 0.4, 0, 0.40, 0.90),
    record("uot-rcl", 0.8, 0, 0.35, 0.60, given=0.28),
    record("uot-rcl-no-relation", 0.4, 0, 0.38, 0.88),
]


def test_cells_name_every_run_once_and_say_how_to_repeat_it():
    cells = cells_of("wikipedia", ("ce", "uot-rcl-no-relation"), (0.2, 0.8), (0, 1))
    assert len({cell.name for cell in cells}) == len(cells) == 8
    assert [cell.seed for cell in cells] == [0] * 4 + [1] * 4
    command = cells[1].command
    assert command.startswith("truepair train wikipedia --method uot-rcl --uot-rcl-relation-weight 0 --label-noise 0.2")


@pytest.mark.parametrize("data", [*label_grid.DATA])
@pytest.mark.parametrize("method", [*label_grid.METHODS, *label_grid.ABLATIONS])
def test_every_row_is_a_command_that_the_program_takes(data, method):
    from truepair.cli.main import build_parser
    from truepair.cli.train import job_of

    options = LabelCell(data, method, 0.4, 1).options()
    job = job_of(build_parser().parse_args(["train", data, "--out", "x", *options]))
    assert (job.data.label_noise, job.setup.training.seed) == (0.4, 1)


def test_a_cell_is_trained_once_and_keeps_its_map(tmp_path, monkeypatch):
    import numpy as np

    from tests.methods.labelled import labelled_pairs

    arrays = {}
    for split, short in (("train", "tr"), ("test", "te")):
        pairs = labelled_pairs(60, seed=len(split))
        arrays |= {f"I_{short}": pairs.images.features, f"T_{short}": pairs.texts.features, f"L_{short}": pairs.labels}
    np.savez(tmp_path / "toy.npz", **arrays)
    monkeypatch.setitem(label_grid.DATA, "toy.npz", ["--epochs", "6", "--batch-size", "16", "--region-share", "0"])
    cell = LabelCell("toy.npz", "uot-rcl", 0.4, 0)
    train_cell(cell, str(tmp_path / "toy.npz"), tmp_path, tmp_path / "runs")
    kept = json.loads((tmp_path / f"{cell.name}.json").read_text())
    assert 0 < kept["result"]["test"]["map_i2t"] <= 1
    assert len([epoch for epoch in kept["epochs"] if epoch["dev_map"] > 0]) == 6
    assert str(tmp_path) not in json.dumps(kept)


def test_tables_hold_means_over_seeds_and_a_row_for_what_was_given():
    text = label_report.label_report(RECORDS)
    assert "| cross entropy | 0.310 ± 0.014 | – |" in text
    assert "| UOT-RCL | 0.400 | 0.350 |" in text
    assert "| … without L_BHG | 0.380 | – |" in text
    assert "| as given | 0.640 ± 0.000 | 0.280 |" in text
    assert "5 runs on `toy`" in text
    assert text.count("as given |") == 1
