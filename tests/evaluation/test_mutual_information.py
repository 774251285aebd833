"""Mutual information against Gaussians whose truth is known, and the objectives against hand-written ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from truepair.errors import DivergedError, InputError
from truepair.evaluation import jensen_shannon_information, mine
from truepair.evaluation.mutual_information import (
    _corrected_loss,
    _donsker_varadhan_value,
    _DonskerVaradhan,
    _marginal_shifts,
    _Paired,
    _Statistic,
)
from truepair.losses.information import jensen_shannon

ESTIMATORS = [mine, jensen_shannon_information]


def gaussians(rho: float, width: int, count: int, seed: int = 1) -> tuple[Any, Any]:
    """`width` independent pairs of columns, each of correlation rho."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, width))
    return x, rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(count, width))


def gaussian_information(rho: float, width: int) -> float:
    return -width / 2 * math.log(1 - rho**2)


def integrated_jensen_shannon(rho: float) -> float:
    """½ ∫ p log(p/m) + q log(q/m) of two standard normal columns, by sums over a grid."""
    grid = np.linspace(-8, 8, 801)
    x, y = np.meshgrid(grid, grid)
    log_product = -(x**2 + y**2) / 2 - math.log(2 * math.pi)
    log_joint = -(x**2 - 2 * rho * x * y + y**2) / (2 * (1 - rho**2)) - math.log(2 * math.pi * math.sqrt(1 - rho**2))
    log_middle = np.logaddexp(log_joint, log_product) - math.log(2)
    joint, product = np.exp(log_joint), np.exp(log_product)
    cells = joint * (log_joint - log_middle) + product * (log_product - log_middle)
    return float(cells.sum() * (grid[1] - grid[0]) ** 2 / 2)


# --- Against the truth ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_mine_of_gaussians(rho: float, width: int) -> None:
    truth = gaussian_information(rho, width)
    assert mine(*gaussians(rho, width, 20_000)) == pytest.approx(truth, rel=0.1, abs=0.01)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_jensen_shannon_of_gaussians(rho: float) -> None:
    truth = integrated_jensen_shannon(rho)
    assert jensen_shannon_information(*gaussians(rho, 1, 20_000)) == pytest.approx(truth, rel=0.1, abs=0.002)


def test_a_dependence_without_correlation_is_found() -> None:
    x = np.random.default_rng(0).normal(size=(4000, 1))
    y = x**2 + 0.3 * np.random.default_rng(1).normal(size=(4000, 1))
    assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) < 0.1
    assert mine(x, y, steps=300) > 0.4
    assert jensen_shannon_information(x, y, steps=300) > 0.1


def test_the_order_of_the_sides_and_affine_maps_hardly_matter() -> None:
    x, y = gaussians(0.8, 2, 6000)
    truth = gaussian_information(0.8, 2)
    turned = 50 * x @ np.array([[1.0, 0.7], [-0.4, 1.2]]) - 1000
    for found in (mine(x, y, steps=400), mine(y, x, steps=400), mine(turned, y, steps=400)):
        assert found == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_learning_by_heart_does_not_count(estimator: Any) -> None:
    """240 pairs of 40 columns are soon told apart, but the held-out rows are not."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(480, 20)), rng.normal(size=(480, 20))
    assert estimator(x, y, steps=400, learning_rate=1e-2) < 0.03


def test_training_stops_before_it_learns_by_heart() -> None:
    """One column of 15 tells something; a network that trains on would put all its trust in the other 14."""
    rng = np.random.default_rng(0)
    x, y = (np.hstack([side, rng.normal(size=(800, 14))]) for side in gaussians(0.9, 1, 800))
    assert 0.3 < mine(x, y, steps=400, learning_rate=1e-2) < 1.0


def test_the_value_is_never_below_zero() -> None:
    rng = np.random.default_rng(2)
    found = [mine(rng.normal(size=64), rng.normal(size=64), seed=seed, steps=50) for seed in range(6)]
    assert min(found) == 0.0 and not math.isnan(sum(found))


def test_no_more_is_reported_than_marginal_pairs_can_tell() -> None:
    x = np.random.default_rng(0).normal(size=(400, 2))
    assert 1.5 < mine(x, x, steps=200, learning_rate=1e-2) <= math.log(160 * 159)
    assert 0.4 < jensen_shannon_information(x, x, steps=200, learning_rate=1e-2) <= math.log(2)
    assert _DonskerVaradhan().value(torch.full((5,), 900.0), torch.zeros(4, 5)) == math.log(20)


# --- The objectives ------------------------------------------------------------------------------------------------


def small_statistic() -> tuple[_Statistic, _Paired]:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        statistic = _Statistic(2, 3, 8).double()
    x, y = (torch.randn(6, width, generator=generator, dtype=torch.float64) for width in (2, 3))
    return statistic, _Paired(x, y)


def test_the_corrected_gradient_is_the_hand_written_one() -> None:
    """∇ E_joint[T] − E_marginal[e^T ∇T]/average, every ∇T on its own."""
    statistic, pairs = small_statistic()
    parameters = list(statistic.parameters())
    average = 3.7
    values = statistic(pairs, [0, 2, 5])
    found = torch.autograd.grad(_corrected_loss(values[0], values[1:], torch.tensor(average).log()), parameters)
    expected = [torch.zeros_like(parameter) for parameter in parameters]
    for shift, row in [(shift, row) for shift in (0, 2, 5) for row in range(6)]:
        value = statistic(pairs, [shift])[0, row]
        weight = -1 / 6 if shift == 0 else math.exp(value.item()) / 12 / average
        for total, gradient in zip(expected, torch.autograd.grad(value, parameters), strict=True):
            total += weight * gradient
    torch.testing.assert_close(list(found), expected, rtol=1e-6, atol=1e-9)


def test_the_average_moves_over_the_batches() -> None:
    """First batch as it is; then (1 − rate) average + rate batch, the batch's own value included; no gradient in it."""
    objective, rate = _DonskerVaradhan(), 0.25
    objective.rate = rate
    batches = [torch.tensor([[0.0, 1.0]]), torch.tensor([[2.0, -1.0]]), torch.tensor([[3.0, 0.5]])]
    average = 0.0
    for number, marginal in enumerate(batches):
        own = float(marginal.exp().mean())
        average = own if number == 0 else (1 - rate) * average + rate * own
        marginal.requires_grad_()
        loss = objective.loss(torch.tensor([0.5]), marginal)
        assert loss.item() == pytest.approx(own / average - 0.5, rel=1e-5)
        (gradient,) = torch.autograd.grad(loss, marginal)
        torch.testing.assert_close(gradient, marginal.detach().exp() / 2 / average)


def test_a_rate_of_one_is_the_plain_gradient() -> None:
    statistic, pairs = small_statistic()
    values, objective = statistic(pairs, [0, 1]), _DonskerVaradhan()
    objective.rate = 1.0
    loss = objective.loss(values[0], values[1:])
    corrected = torch.autograd.grad(loss, list(statistic.parameters()), retain_graph=True)
    plain = torch.autograd.grad(-_donsker_varadhan_value(values[0], values[1:]), list(statistic.parameters()))
    torch.testing.assert_close(corrected, plain)


def test_large_statistics_do_not_overflow() -> None:
    joint, marginal = torch.tensor([800.0, 820.0]), torch.tensor([[800.0, 800.0]])
    assert float(_donsker_varadhan_value(joint, marginal)) == pytest.approx(10.0)
    assert math.isfinite(float(_DonskerVaradhan().loss(joint, marginal)))


def test_pairs_follow_the_shift() -> None:
    statistic, pairs = small_statistic()
    values = statistic(pairs, [0, 4])
    for row in range(6):
        for number, shift in enumerate((0, 4)):
            alone = statistic(_Paired(pairs.x[[row]], pairs.y[[(row - shift) % 6]]), [0])
            assert alone.item() == pytest.approx(values[number, row].item(), rel=1e-9)


@pytest.mark.parametrize(("count", "pairs"), [(10, 25), (10, 1000), (2, 5), (100, 7)])
def test_marginal_pairs_are_never_joint_and_never_repeat(count: int, pairs: int) -> None:
    shifts = _marginal_shifts(count, pairs, np.random.default_rng(0))
    assert len(set(shifts)) == len(shifts) == min(max(pairs // count, 1), count - 1)
    assert min(shifts) >= 1 and max(shifts) <= count - 1


def test_jensen_shannon_of_a_constant_discriminator() -> None:
    for logit in (-3.0, 0.0, 1.5):
        share = 1 / (1 + math.exp(-logit))
        found = float(jensen_shannon(torch.full((7,), logit), torch.full((3, 5), logit)))
        assert found == pytest.approx(math.log(share) + math.log(1 - share), rel=1e-6)


def test_jensen_shannon_of_the_best_discriminator_is_the_divergence() -> None:
    """Of a joint distribution over 2 × 2 cells, every cell as often among the samples as it is probable."""
    joint = np.array([[0.4, 0.1], [0.2, 0.3]])
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    middle = (joint + product) / 2
    divergence = ((joint * np.log(joint / middle)).sum() + (product * np.log(product / middle)).sum()) / 2
    logits = torch.tensor(np.log(joint / product).ravel())
    at_joint = logits.repeat_interleave(torch.tensor((100 * joint).round().astype(int).ravel()))
    at_product = logits.repeat_interleave(torch.tensor((100 * product).round().astype(int).ravel()))
    assert float(jensen_shannon(at_joint, at_product)) / 2 + math.log(2) == pytest.approx(divergence, rel=1e-12)


# --- Draws and input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_seed_gives_one_number_and_leaves_global_state(estimator: Any) -> None:
    x, y = gaussians(0.9, 2, 300)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    found = estimator(x, y, steps=60, seed=3)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002
    torch.rand(5)
    assert estimator(x, y, steps=60, seed=3) == found > 0
    assert estimator(x, y, steps=60, seed=4) != found


def test_the_kind_of_array_does_not_matter() -> None:
    x, y = gaussians(0.9, 1, 200)
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = mine(x, y, steps=40)
    assert found > 0
    assert mine(x[:, 0], y[:, 0], steps=40) == found
    assert mine(torch.tensor(x, requires_grad=True), torch.tensor(y).double(), steps=40) == found
    assert mine(1e80 * x.astype(np.float64), 1e-250 * y.astype(np.float64), steps=40) == pytest.approx(found, rel=1e-3)
    with torch.inference_mode():
        assert mine(torch.tensor(x), torch.tensor(y), steps=40) == found
    assert isinstance(mine(x > 0, (9 * y).astype(np.int64), steps=40), float)


def test_input_is_left_as_it_is() -> None:
    x, y = gaussians(0.5, 1, 100)
    before = x.copy(), y.copy()
    mine(x, y, steps=5)
    assert np.array_equal(x, before[0]) and np.array_equal(y, before[1])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constant_columns_carry_nothing(estimator: Any) -> None:
    x, y = gaussians(0.9, 1, 200)
    constant = np.full((200, 1), 0.1)
    assert estimator(constant, y) == estimator(y, np.hstack([constant, constant])) == 0.0
    assert estimator(np.hstack([constant, x]), y, steps=40) == estimator(x, y, steps=40)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e120])
def test_a_bad_value_is_named(estimator: Any, bad: float) -> None:
    x, y = gaussians(0.5, 3, 100)
    y[17, 2] = bad
    with pytest.raises(InputError, match=r"y\[17, 2\] \(row 17\)"):
        estimator(x, y)
    with pytest.raises(InputError, match=r"x\[17, 0\]"):
        estimator(torch.tensor(y[:, 2]), x)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_shapes_and_dtypes_are_refused(estimator: Any) -> None:
    good = np.arange(100.0)
    with pytest.raises(InputError, match="x has 100 rows and y 99"):
        estimator(good, good[1:])
    with pytest.raises(InputError, match="63 rows; expected at least 64"):
        estimator(good[:63], good[:63])
    with pytest.raises(InputError, match="0 rows"):
        estimator(np.zeros((0, 2)), np.zeros((0, 2)))
    with pytest.raises(InputError, match="y has 100 rows of no columns"):
        estimator(good, np.zeros((100, 0)))
    for bad in (np.zeros((100, 2, 2)), np.float64(1.0), good + 1j, torch.zeros(100) + 1j, np.full(100, "a")):
        with pytest.raises(InputError, match="expected real numbers"):
            estimator(bad, good)


@pytest.mark.parametrize(
    ("option", "value"),
    [("steps", 0), ("seed", -1), ("learning_rate", 0.0), ("learning_rate", math.nan)],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_impossible_options_are_refused(estimator: Any, option: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{option}.*expected"):
        estimator(np.arange(100.0), np.arange(100.0), **{option: value})


def test_divergence_is_an_error() -> None:
    with pytest.raises(DivergedError, match="learning_rate"):
        mine(*gaussians(0.5, 1, 100), learning_rate=1e30, steps=5)
