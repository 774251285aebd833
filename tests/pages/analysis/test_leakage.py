"""Leakage against parts whose mutual information is known, the components it is estimated on, and the ridge map."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError
from truepair.evaluation import jensen_shannon_information, mine
from truepair.evaluation.subspaces import EncodedParts
from truepair.pages.analysis.leakage import ceiling, leakage, leakage_between, principal_components
from truepair.pages.analysis.retrieval import STRENGTHS, fit_ridge
from truepair.pages.analysis.subject import Split, one_caption_each

NAMES = ("V_S", "V_X")


def wide(latents, seed, width=128, noise=0.05):
    """A part of many columns that holds a few latents, (n, width)."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(
        latents @ rng.normal(size=(latents.shape[1], width)) / 4 + noise * rng.normal(size=(len(latents), width))
    ).float()


def two_parts(correlation, rows=400, latents=6):
    rng = np.random.default_rng(7)
    z, own = rng.normal(size=(2, rows, latents))
    return wide(z, 1), wide(correlation * z + math.sqrt(1 - correlation**2) * own, 2)


def some_pairs(images, captions=2):
    count = images * captions
    return Pairs(
        Images(np.zeros((images, 3), dtype=np.float32), tuple(map(str, range(images)))),
        Texts(("a",) * count, tuple(map(str, range(count)))),
        image_index=np.repeat(np.arange(images), captions),
        text_index=np.arange(count),
    )


@pytest.fixture
def quick(monkeypatch):
    """One estimate instead of three, of a third of the steps."""
    monkeypatch.setattr("truepair.pages.analysis.leakage.ESTIMATES", 1)
    for estimate in (mine, jensen_shannon_information):
        monkeypatch.setattr(f"truepair.pages.analysis.leakage.{estimate.__name__}", partial(estimate, steps=300))


@pytest.mark.usefixtures("quick")
def test_more_shared_is_more_leakage_and_shuffled_pairs_share_nothing():
    apart, some = (leakage_between(*two_parts(correlation), NAMES, seed=0) for correlation in (0.0, 0.8))
    assert apart.mine.mean < 0.1 and apart.jensen_shannon.mean < 0.03
    truth = -0.5 * 6 * math.log(1 - 0.8**2)  # of the latents; what is seen of them has noise
    assert 0.3 * truth < some.mine.mean < truth
    assert 0.1 < some.jensen_shannon.mean < math.log(2)
    assert some.shuffled < 0.1


def test_the_ceiling_is_what_the_estimate_ends_at():
    rows = 64
    same = np.random.default_rng(0).normal(size=(rows, 1)) * 1e3
    assert 0 <= mine(same, same, steps=50) <= ceiling(rows)
    held_out = rows - int(0.6 * rows)
    assert ceiling(rows) == pytest.approx(math.log(held_out * (held_out - 1)))
    assert ceiling(5000) == pytest.approx(math.log(300_000), abs=0.01)


def test_components_keep_the_distances_and_say_how_much_is_kept():
    part = two_parts(0.5)[0]
    whole, kept = principal_components(part, 128)
    assert kept == pytest.approx(1)
    centred = part.double() - part.double().mean(dim=0)
    torch.testing.assert_close(torch.from_numpy(whole @ whole.T), centred @ centred.T, rtol=1e-4, atol=1e-4)
    few, share = principal_components(part, 2)
    assert few.shape == (400, 2) and share < 0.8
    assert share == pytest.approx(few.var(axis=0).sum() / whole.var(axis=0).sum())
    assert few.var(axis=0)[0] >= few.var(axis=0)[1]


def test_a_constant_part_has_no_components_and_leaks_nothing():
    constant = torch.full((100, 5), 0.3)
    components, kept = principal_components(constant)
    assert not components.any() and kept == 1
    found = leakage_between(constant, torch.randn(100, 5), NAMES, seed=0)
    assert found.mine.mean == 0 and found.jensen_shannon.mean == 0


def test_each_image_counts_once_with_its_first_caption(monkeypatch):
    """Estimates of what the parts hold are replaced by a look at which rows they are given."""
    seen = []

    def spy(x, y, *, seed):
        seen.append((x, y, seed))
        return float(seed)

    module = "truepair.pages.analysis.leakage"
    monkeypatch.setattr(f"{module}.mine", spy)
    monkeypatch.setattr(f"{module}.jensen_shannon_information", lambda x, y, *, seed: 0.5)
    pairs, number = some_pairs(70), torch.arange(140.0) ** 2  # unlike itself the other way round
    assert one_caption_each(pairs).texts.tolist() == list(range(0, 140, 2))
    images = EncodedParts(*(torch.stack([sign * number[:70]], dim=1) for sign in (0, 1, -1)))
    texts = EncodedParts(*(torch.stack([sign * number], dim=1) for sign in (0, 1, -1)))
    found = leakage(Split(pairs, images, texts), seed=4)
    assert {side: (one.parts, one.rows) for side, one in found.items()} == {
        "image": (("V_S", "V_X"), 70),
        "text": (("T_S", "T_X"), 70),
    }
    assert [seed for *_, seed in seen] == [4, 5, 6, 4] * 2
    assert (found["image"].mine.mean, found["image"].mine.lowest, found["image"].mine.highest) == (5, 4, 6)
    spans = [np.sort(np.abs(np.diff(np.sort(x[:, 0])))) for x, _, _ in seen]
    np.testing.assert_allclose(spans[0], np.diff(np.arange(70) ** 2))  # every image
    np.testing.assert_allclose(spans[4], np.diff(np.arange(0, 140, 2) ** 2))  # the first text of each image
    for x, y, _ in (seen[0], seen[4]):
        assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) == pytest.approx(1)  # rows belong together
    for x, y, _ in (seen[3], seen[7]):
        assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) < 0.4  # shuffled


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="at least 64"):
        leakage_between(torch.randn(63, 3), torch.randn(63, 3), NAMES, seed=0)


def test_the_ridge_map_finds_a_linear_law_and_nothing_in_noise():
    generator = torch.Generator().manual_seed(0)
    x, other = torch.randn(2, 300, 5, generator=generator)
    law = torch.randn(5, 3, generator=generator)
    y = x @ law + 2 + 0.01 * torch.randn(300, 3, generator=generator)
    found = fit_ridge(x[:200], y[:200], seed=0)
    assert found.strength == STRENGTHS[0]
    assert found.explained(x[200:], y[200:]) > 0.999
    np.testing.assert_allclose(found.weights, law, atol=0.02)
    np.testing.assert_allclose(found.centred(x[200:]), y[200:] - y[:200].mean(dim=0), atol=0.1)
    nothing = fit_ridge(other[:200], y[:200], seed=0)
    assert nothing.strength > found.strength
    assert nothing.explained(other[200:], y[200:]) < 0.05


def test_the_ridge_map_is_the_minimum_it_claims():
    """The gradient of ‖Y − XW‖²/n + λ v ‖W‖² is 0, on centred X and Y."""
    x, y = torch.randn(40, 6, dtype=torch.float64), torch.randn(40, 2, dtype=torch.float64)
    found = fit_ridge(x, y, seed=3)
    centred, target = x - x.mean(dim=0), y - y.mean(dim=0)
    weights = torch.from_numpy(found.weights).requires_grad_()
    variance = centred.square().mean()
    loss = (target - centred @ weights).square().sum() / 40 + found.strength * variance * weights.square().sum()
    (gradient,) = torch.autograd.grad(loss, weights)
    assert float(gradient.abs().max()) < 1e-10


def test_a_constant_target_is_explained_by_nobody():
    x = torch.randn(30, 4)
    assert fit_ridge(x, torch.ones(30, 2), seed=0).explained(x, torch.ones(30, 2)) == 0
    assert math.isfinite(fit_ridge(torch.ones(30, 4), x, seed=0).explained(x, x))


@pytest.mark.usefixtures("quick")
def test_noise_drowns_what_hides_in_small_differences():
    """An exclusive part that repeats the other one a hundred times smaller than what else it holds."""
    rng = np.random.default_rng(3)
    shared, own = rng.normal(size=(2, 400, 2))
    invariant = torch.from_numpy(np.hstack([shared, shared])).float()
    exclusive = torch.from_numpy(np.hstack([0.01 * shared, own])).float()
    found = leakage_between(invariant, exclusive, NAMES, noise=0.5, seed=0)
    assert found.without_noise > 0.4 and found.jensen_shannon.mean < 0.05
    assert found.noise == 0.5
