"""Reasons: which indicator is named, with which number, and for whom."""

import time

import numpy as np
import pytest

from truepair.audit.tables import reasons


def test_names_the_indicator_that_fewest_unflagged_pairs_undercut():
    matching = np.array([0.5, 0.9, 0.8, 0.7, 0.6, 0.95])
    rank = np.array([0.1, 0.9, 0.8, 0.7, 0.6, 0.95])
    structure = np.array([0.99, 0.9, 0.8, 0.7, 0.6, 0.95])
    flagged = np.array([True, False, False, False, False, False])
    found = reasons(np.zeros(6), {"structure": structure, "rank": rank, "matching": matching}, flagged, bank=1000)
    # Both stand below all unflagged pairs; the rank is further from their median. Structure is above them.
    assert found[0] == (
        "50 % of the other captions and images fit better; "
        "among others, image and caption do not choose each other (matching 0.50)"
    )
    assert found[1:] == [""] * 5


@pytest.mark.parametrize(
    ("rho", "said"),
    [
        (0.0, "100 % of the other captions and images fit better"),
        (1 - np.log(123) / np.log(1001), "12 % of the other captions and images fit better"),
        (1 - np.log(6) / np.log(1001), "5 other captions and images fit better"),
        (1 - np.log(2) / np.log(1001), "another caption or image fits at least as well"),
        (1.0, "others come close to fitting as well"),
    ],
)
def test_the_rank_is_said_as_a_share_of_the_bank(rho, said):
    values = np.array([rho, 1.5, 1.6])
    found = reasons(np.ones(3), {"rank": values}, np.array([True, False, False]), bank=1000)
    assert found == [said, "", ""]


def test_the_pair_itself_counts_in_the_rank_and_not_among_the_others():
    found = reasons(np.ones(3), {"rank": np.array([0.0, 0.9, 1.0])}, np.array([True, False, False]), bank=4)
    assert found[0] == "100 % of the other captions and images fit better"


def test_one_low_indicator_is_named_alone_and_none_is_admitted():
    values = np.linspace(0, 1, 101)
    flagged = np.zeros(101, bool)
    flagged[[10, 60]] = True
    other = values[::-1].copy()
    other[10] = 0.5
    found = reasons(np.full(101, 0.3), {"memory": values, "structure": other}, flagged, bank=10)
    assert found[10] == "models that trained on it came to doubt it (memory 0.10)"
    assert found[60] == "no single indicator is low, all together are"
    low = np.full(101, 0.3)
    low[60] = -0.2
    found = reasons(low, {"memory": values, "structure": other}, flagged, bank=10)
    assert found[60] == "image and caption are less alike than others (similarity −0.20)"


def test_order_equals_a_naive_loop():
    rng = np.random.default_rng(0)
    names = ["matching", "structure", "neighbours", "certainty", "memory"]
    columns = {name: np.round(rng.random(400), 2) for name in names}
    flagged = rng.random(400) < 0.2
    found = reasons(np.ones(400), columns, flagged, bank=100)
    for row in range(400):
        ranked = []
        for name, values in columns.items():
            trusted = values[~flagged]
            share = (trusted < values[row]).mean() + (trusted == values[row]).mean() / 2
            distance = (np.median(trusted) - values[row]) / (np.median(trusted) - np.quantile(trusted, 0.1))
            ranked.append((share, -distance, name))
        loud = [(name, columns[name][row]) for share, _, name in sorted(ranked)[:2] if share < 0.25]
        said = found[row].split("; ") if flagged[row] and loud else []
        assert len(said) == (len(loud) if flagged[row] else 0)
        for (name, value), text in zip(loud, said, strict=False):
            assert name in text
            assert (f"{value:.2f}" if value >= 0.01 else "under 0.01") in text


def test_nan_says_nothing_and_everything_flagged_is_explained():
    values = np.array([np.nan, 0.1, 0.9, 0.8])
    found = reasons(np.full(4, np.nan), {"memory": values}, np.array([True, True, False, False]), bank=0)
    assert found[:2] == [
        "no single indicator is low, all together are",
        "models that trained on it came to doubt it (memory 0.10)",
    ]
    everyone = reasons(np.zeros(4), {"rank": values, "odd": values}, np.ones(4, bool), bank=0)
    assert all(everyone)
    assert reasons(np.zeros(2), {}, np.zeros(2, bool), bank=5) == ["", ""]


def test_a_million_pairs_with_few_flagged_take_little():
    rng = np.random.default_rng(0)
    columns = {name: rng.random(300_000, dtype=np.float32) for name in ("matching", "rank", "structure")}
    flagged = np.zeros(300_000, bool)
    flagged[::100] = True
    start = time.process_time()
    found = reasons(columns["rank"], columns, flagged, bank=1000)
    assert time.process_time() - start < 2
    assert all(found[0:300_000:100]) and not any(found[1:300_000:100])
