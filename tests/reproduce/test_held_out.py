"""Linear models looked at before any training: what is found is what a training finds, and how it is shown."""

import json
import math

import numpy as np
import pytest

from tests.conftest import MANY_WORDS, write_tiny_precomp
from truepair.cli.main import main as cli
from truepair.data.config import DataConfig
from truepair.errors import InputError
from truepair.reproduce import held_out
from truepair.reproduce.cells import Context, Places
from truepair.reproduce.held_out import held_out_cells, main
from truepair.reproduce.linear_models import look
from truepair.reproduce.render.held_out import held_out as shown_table
from truepair.reproduce.tables import Filled, Section, Table
from truepair.training.run_folder import read_lines

WORDS = ["--noise", "0.7", "--seed", "1"]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """800 pairs of 400 images."""
    images = {"train": 400, "dev": 16, "test": 16}
    return write_tiny_precomp(tmp_path_factory.mktemp("many") / "many", images=images, words=MANY_WORDS)


@pytest.fixture(scope="module")
def record(many):
    return look(DataConfig(str(many), noise=0.7), 1)


def test_it_finds_what_a_training_finds(many, record, tmp_path):
    words = [
        "--method",
        "truepair",
        "--truepair-pieces",
        "3",
        "--width",
        "16",
        "--epochs",
        "3",
        "--quiet",
        "--threads",
        "1",
    ]
    assert cli(["train", str(many), *WORDS, *words, "--out", str(tmp_path / "run")]) == 0
    first = read_lines(tmp_path / "run" / "metrics.jsonl")[0]
    together, alone = record["together"], record["alone"]
    assert together[0]["share"] == pytest.approx(first["first_share"], abs=0.01)
    assert record["recall"] == pytest.approx(first["first_recall"], abs=0.02)
    assert record["pairs"] == 800 and record["mismatch_rate"] == pytest.approx(0.7, abs=0.01)
    assert len(alone) == 10 and len(together) == 2
    for part, five in zip((alone[:5], alone[5:]), together, strict=True):
        assert min(each["share"] for each in part) - 0.02 < five["share"] < max(each["share"] for each in part) + 0.02
    assert len(record["auroc"]) == 3 and all(0.9 < each <= 1 for each in record["auroc"])
    assert record["auroc_of_means"] > record["auroc"][-1] - 0.002


def test_without_mismatches_or_with_few_pairs_there_is_nothing_to_look_at(many, tiny):
    with pytest.raises(InputError, match="no pairs are known to be mismatched"):
        look(DataConfig(str(many)), 1)
    with pytest.raises(InputError, match="more images"):
        look(DataConfig(str(tiny), noise=0.7), 1)


def test_a_cell_is_a_line_of_its_own_and_a_row_of_the_table(many, record, monkeypatch, capsys):
    grid = {"part": "3,000 toys", "data": "many", "rates": [0.7], "seeds": [1, 2]}
    cells = [*held_out_cells(Context("toy", {}, {}), **grid)]
    assert [cell.name for cell in cells] == ["3000-toys-noise70-seed1", "3000-toys-noise70-seed2"]
    assert cells[0].command == f"python -m truepair.reproduce.held_out many {' '.join(WORDS)}"

    def run(*words, module):
        assert module == "truepair.reproduce.held_out"
        main(words)
        return capsys.readouterr().out

    monkeypatch.setattr(held_out, "truepair", run)
    measured = cells[0].measure(Places(many.parent, many.parent))
    assert json.dumps(measured["held_out"]) == json.dumps(record)
    other = {**record, "auroc": [0.8, 0.9, 0.95], "auroc_of_means": 0.6, "taken": True}
    kept = [
        {"name": cell.name, "cell": cell.facts, "command": cell.command, "date": "2026-11-24", "held_out": found}
        for cell, found in zip(cells, ({**record, "taken": False}, other), strict=True)
    ]
    table = Table("toy", "toys", cells, {})
    text = shown_table(Section("docs/toy.md", "toys", ["toy"], "held_out"), Filled(table, kept))
    row = text.splitlines()[-1]
    assert text.startswith("Seeds 1, 2, 2026-11-24") and row.startswith("| 3,000 toys | 70 % | 2 | ")
    assert row.endswith(" | 1 of 2 |")
    mean = np.mean([record["auroc"][0], 0.8])
    assert f"| {mean:.3f} ± {abs(record['auroc'][0] - 0.8) / math.sqrt(2):.3f} |" in row
    means = [record["auroc_of_means"], 0.6]
    assert f"| {np.mean(means):.3f} ± {np.std(means, ddof=1):.3f} |" in row
    low, high = (f"{end([each['share'] for each in record['alone']]):.2f}" for end in (min, max))
    assert f"| {low} to {high} |" in row
    nothing = shown_table(Section("docs/toy.md", "toys", ["toy"], "held_out"), Filled(table, []))
    assert nothing == "No run is there yet."
