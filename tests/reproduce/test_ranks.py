"""Ranks of methods: by hand, and only of what can be compared."""

import numpy as np
import pytest

from truepair.reproduce.render.ranks import chance_of, holm, mean_ranks, rank_table

TITLES = {"a": "first", "b": "second", "c": "third"}


def record(method, noise, seed, value):
    return {"cell": {"method": method, "noise": noise, "seed": seed}, "value": value}


def rows_of(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ][2:]


def test_ranks_are_means_of_places_and_equals_share_theirs():
    assert mean_ranks({"a": [3.0, 1.0], "b": [2.0, 1.0], "c": [1.0, 0.0]}) == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_chance_is_that_of_all_signs():
    """Six gaps of one sign: of the 64 ways to give them signs, two are as far from the middle."""
    assert chance_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == pytest.approx(2 / 64)
    assert chance_of([0.0, 0.0, 0.0]) == chance_of([3.0]) == 1.0


def test_holm_by_hand():
    found = holm({"x": 0.01, "y": 0.04, "z": 0.03, "w": 0.9})
    assert found == pytest.approx({"x": 0.04, "z": 0.09, "y": 0.09, "w": 0.9})


def test_the_best_is_first_and_what_cannot_be_told_apart_says_so():
    rng = np.random.default_rng(0)
    records = []
    for noise in (0.0, 0.2, 0.4, 0.6):
        for seed in range(3):
            base = 300 - 100 * noise + rng.normal()
            records += [record("a", noise, seed, base), record("b", noise, seed, base - 20 + rng.normal())]
            records.append(record("c", noise, seed, base + (1 if seed else -1.5) * rng.random()))
    text = rank_table(TITLES, records, "value", 1)
    assert text.startswith("9 cells (noise rate × seed).")  # none without noise
    (best, *_), (other, _, _, chance), (last, rank, gap, sure) = rows_of(text)
    assert {best, other} == {"first", "third"} and chance.endswith("not told apart")
    assert (last, rank) == ("second", "3.00") and float(gap) == pytest.approx(-20, abs=2)
    assert float(sure) == pytest.approx(2 * 2 / 512, abs=1e-3)


def test_only_cells_that_all_have_count_and_one_method_alone_has_no_table():
    records = [record("a", 0.4, seed, 1.0) for seed in range(3)]
    assert rank_table(TITLES, records, "value", 1) == ""
    assert rank_table(TITLES, [*records, record("b", 0.6, 0, 9.0)], "value", 1) == ""
    text = rank_table(TITLES, [*records, *(record("b", 0.4, seed, 9.0) for seed in (0, 1))], "value", 1)
    assert text.startswith("2 cells") and [row[0] for row in rows_of(text)] == ["second", "first"]
    assert rank_table(TITLES, [], "value", 1) == ""


def test_a_method_with_few_cells_does_not_take_those_of_the_others_away():
    both = [record(name, 0.4, seed, value) for seed in range(5) for name, value in (("a", 1.0), ("b", 9.0))]
    text = rank_table(TITLES, [*both, record("c", 0.4, 0, 5.0)], "value", 1)
    assert text.startswith("5 cells") and [row[0] for row in rows_of(text)[:2]] == ["second", "first"]
    assert text.endswith("Not ranked, with too few cells: third (1).")
    text = rank_table(TITLES, [*both, record("c", 0.4, 0, 5.0), record("c", 0.4, 1, 5.0)], "value", 1)
    assert text.startswith("2 cells") and "Not ranked" not in text
