"""NCR's prediction of a pair's label, against the rule in words."""

import pytest
import torch

from truepair.correspondence.slack import foremost, predicted_label, slack
from truepair.errors import InputError

LOSSES = torch.tensor([0.0, 0.1, 0.2, 0.39, 0.4, 0.9, 0.05, 0.3, 0.3, 0.3, 0.02], dtype=torch.float64)


def test_prediction_is_the_slack_in_units_of_the_best_tenth():
    left = [min(max(0.2 - loss / 2, 0.0), 0.2) for loss in LOSSES.tolist()]
    mean = (0.2 + 0.19) / 2  # 11 pairs: ⌊1.1⌋ + 1 = 2 of them
    assert slack(LOSSES, 0.2).tolist() == pytest.approx(left, abs=1e-15)
    assert predicted_label(LOSSES, 0.2).tolist() == pytest.approx([min(1.0, value / mean) for value in left], abs=1e-12)


def test_a_smaller_loss_predicts_more():
    found = predicted_label(LOSSES, 0.2)[LOSSES.argsort()]
    assert bool((found.diff() <= 0).all()) and found[0] == 1 and found[-1] == 0


def test_where_nothing_is_left_nothing_is_predicted():
    assert predicted_label(torch.full((3,), 5.0), 0.2).tolist() == [0.0] * 3


def test_of_equal_values_the_first_are_foremost():
    assert foremost(torch.tensor([1.0, 2.0, 2.0] + [0.0] * 7)).tolist() == [1, 2]


@pytest.mark.parametrize(("losses", "margin"), [([-0.1], 0.2), ([float("nan")], 0.2), ([0.1], 0.0)])
def test_bad_values_are_refused(losses, margin):
    with pytest.raises(InputError):
        slack(torch.tensor(losses), margin)
    with pytest.raises(InputError):
        slack(torch.zeros(2, 2), 0.2)
