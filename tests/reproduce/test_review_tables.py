"""The table of what decisions are worth."""

import pytest

from truepair.reproduce.render.review_picture import review_picture
from truepair.reproduce.render.reviews import reviews
from truepair.reproduce.reviews import COUNTS
from truepair.reproduce.tables import Filled, read_specs

SECTION = next(section for section in read_specs()[1] if section.render == "reviews")


def record(seed, estimate, auroc):
    rows = [
        {
            "decisions": count,
            "estimate": estimate,
            "by_people": [0.25, 0.1, 0.3],
            "taken_over": bool(count),
            "auroc": [0.7, auroc],
            "average_precision": [0.4, 0.5],
        }
        for count in (0, 100)
    ]
    head = {
        "name": f"photographs-near20-seed{seed}",
        "cell": {"seed": seed},
        "command": "as typed",
        "date": "2026-01-31",
    }
    return {**head, "pairs": 5000, "mismatch_rate": 0.2, "reviews": rows}


def test_a_row_a_number_of_decisions():
    records = [record(0, [0.1, 0.0, 0.5], 0.8), record(1, [0.3, 0.25, 0.4], 0.9)]
    text = reviews(SECTION, Filled(None, records))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    assert rows[1][:6] == ["0", "20.0 ± 14.1", "12.5 – 45.0", "1 of 2", "–", "–"]
    assert rows[2][4:6] == ["25.0 ± 0.0 (10.0 – 30.0)", "2 of 2"]
    assert rows[2][6] == "0.700 ± 0.000 → 0.850 ± 0.071" and rows[1][6] == "0.850 ± 0.071"
    assert "5,000 pairs" in text and "`as typed`" in text and "seeds 0, 1" in text
    axes = review_picture(Filled(None, records)).axes
    assert list(axes[0].lines[0].get_ydata()) == pytest.approx([20, 20])
    assert [list(line.get_ydata()) for line in axes[1].lines] == [[0.7, 0.7], pytest.approx([0.85, 0.85])]


def test_the_table_has_three_seeds_and_counts_from_nothing():
    cells = read_specs()[0]["review"].cells
    assert [cell.facts["seed"] for cell in cells] == [0, 1, 2] and COUNTS[0] == 0
    assert len({cell.command for cell in cells}) == 3
