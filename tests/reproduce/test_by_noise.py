"""An ablation over noise: a column a rate and kind of noise, differences of equal seeds, p of three or more."""

import pytest
from scipy.stats import ttest_rel

from truepair.reproduce.cells import Cell
from truepair.reproduce.render.by_noise import by_noise
from truepair.reproduce.tables import Filled, Section, Table

TITLES = {"ours": "our method", "ours-no-a": "without a", "ours-no-b": "without b", "other": "of another table"}
OPTIONS = {"whole": "ours", "names": {"toy": "toys", "absent": "absent"}}


def record(method, seed, rsum, *, rate=0.4, kind=None):
    facts = {"data": "toy", "method": method, "noise": rate, "seed": seed} | ({"kind": kind} if kind else {})
    return {
        "name": f"{method}-{kind}-{rate}-{seed}", "cell": facts, "command": "", "date": f"2026-01-0{2 + seed}",
        "result": {"dev": {"rsum": rsum}, "test": {"rsum": 1.0}},
    }  # fmt: skip


def shown(records):
    cells = [Cell(each["name"], each["cell"], each["command"], dict) for each in records]
    section = Section("docs.md", "toy", ["toy"], "by_noise", options=OPTIONS)
    return by_noise(section, Filled(Table("toy", "", cells, TITLES), records)).splitlines()


def test_columns_are_rates_then_kinds_and_differences_those_of_equal_seeds():
    assert shown(
        [
            record("ours", 0, 300.0, kind="nearest"),
            record("ours", 0, 310.0),
            record("ours", 1, 320.0),
            record("ours", 0, 400.0, rate=0.0),
            record("ours-no-a", 0, 305.0, kind="nearest"),
            record("ours-no-a", 1, 300.0),
            record("ours-no-a", 2, 900.0),  # without the whole method of that seed
            record("ours-no-b", 0, 250.0, rate=0.8),  # the same
        ]
    ) == [
        "**Toys**, dev rSum, seeds 0, 1, 2, 2026-01-02 to 2026-01-04:",
        "",
        "| | 0 % | 40 % | 80 % | 40 %, `nearest` |",
        "|---|---|---|---|---|",
        "| our method | 400.0 | 315.0 ± 7.1 | – | 300.0 |",
        "| without a | – | -20.0 (1) | – | +5.0 (1) |",
    ]


def test_three_seeds_are_tested_pairwise():
    whole, without = [300.0, 340.0, 310.0], [290.0, 335.0, 297.0]
    records = [record("ours", seed, value) for seed, value in enumerate(whole)]
    records += [record("ours-no-a", seed, value) for seed, value in enumerate(without)]
    *_, line = shown(records)
    chance = float(line.rsplit("p = ", 1)[1].rstrip(" |"))
    assert chance == pytest.approx(ttest_rel(without, whole).pvalue, abs=5e-5)
    assert line.startswith("| without a | -9.3 ± 4.0 (3), p = ")
