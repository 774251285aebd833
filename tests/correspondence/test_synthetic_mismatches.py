"""Synthetic mismatches of a batch, and what beliefs are worth beside them, against plain loops."""

import math

import numpy as np
import pytest
import torch

from tests.audit.verdict.naive_verdict import naive_knots, naive_p_match
from truepair.correspondence import synthetic_probability
from truepair.correspondence.division import beyond_chance, upper_group
from truepair.errors import InputError


def naive_probability(similarity, temperature):
    count, found = len(similarity), []
    for i in range(count):
        j = (i + 1) % count
        texts = [similarity[i][k] for k in range(count) if k != i]
        images = [similarity[k][j] for k in range(count) if k != j]
        sides = []
        for candidates in (texts, images):
            most = max(candidates)
            total = sum(math.exp((value - most) / temperature) for value in candidates)
            sides.append(math.exp((similarity[i][j] - most) / temperature) / total)
        found.append(sum(sides) / 2)
    return found


@pytest.mark.parametrize("size", [2, 3, 40])
@pytest.mark.parametrize("kind", ["random", "ones", "minus ones", "alternating"])
def test_the_probability_is_that_of_a_plain_loop(size, kind):
    generator = torch.Generator().manual_seed(size)
    similarity = {
        "random": torch.rand(size, size, generator=generator, dtype=torch.float64) * 2 - 1,
        "ones": torch.ones(size, size, dtype=torch.float64),
        "minus ones": -torch.ones(size, size, dtype=torch.float64),
        "alternating": 1 - 2.0 * ((torch.arange(size)[:, None] + torch.arange(size)) % 2).double(),
    }[kind]
    found = synthetic_probability(similarity, temperature=0.05)
    np.testing.assert_allclose(found.numpy(), naive_probability(similarity.tolist(), 0.05), rtol=1e-12, atol=1e-300)


def test_what_a_pair_came_with_is_no_candidate():
    similarity = torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    changed = similarity + torch.diag(torch.tensor([5.0, -5.0, 1.0, 0.0, -1.0, 3.0]))
    assert torch.equal(*(synthetic_probability(s, temperature=0.05) for s in (similarity, changed)))
    assert synthetic_probability(torch.zeros(1, 1), temperature=0.05).tolist() == [1.0]
    for bad in (torch.full((2, 2), torch.nan), torch.zeros(2, 3)):
        with pytest.raises(InputError):
            synthetic_probability(bad, temperature=0.05)


def test_large_batches_and_half_precision():
    similarity = torch.rand(512, 512, generator=torch.Generator().manual_seed(1), dtype=torch.bfloat16)
    found = synthetic_probability(similarity, temperature=0.05)
    assert bool(torch.isfinite(found).all()) and 0 <= float(found.min()) <= float(found.max()) <= 1


def test_beyond_chance_is_where_pairs_are_twice_as_frequent_as_synthetic_mismatches():
    """1 − f₀/f ≥ ½ by the plain loops of the audit's verdict, for a share of 1; then in units of the mean."""
    generator = torch.Generator().manual_seed(0)
    odds = torch.cat([torch.randn(150, generator=generator) - 6, torch.randn(50, generator=generator) - 3])
    made = torch.randn(200, generator=generator) - 6
    belief, synthetic = torch.sigmoid(odds.double()), torch.sigmoid(made.double())
    found = beyond_chance(belief, synthetic)
    knots = naive_knots(odds.tolist(), made.tolist(), [1 / 200] * 200, 1.0)
    matched = [
        naive_p_match(min(max(x, knots[0][0]), knots[-1][0]), knots) for x in odds.tolist()
    ]  # beyond the last knots it is about as there
    sure = [abs(p - 0.5) > 0.05 for p in matched]  # equal ends of the curve are spread by a little
    believed = [p >= 0.5 for p in matched]
    assert sum(sure) > 180 and 30 < sum(believed) < 90
    assert all(bool(found[k] > 0) == believed[k] for k in range(200) if sure[k])
    inside = found > 0
    expected = (belief[inside] / belief[inside].mean()).clamp(max=1.0)
    torch.testing.assert_close(found[inside], expected)
    assert bool((found[belief.argsort()].diff() >= 0).all())  # a larger belief never counts less


@pytest.mark.parametrize("seed", range(5))
def test_where_chance_explains_all_pairs_every_one_counts(seed):
    """Mismatched pairs alone: nothing can be told of them."""
    generator = torch.Generator().manual_seed(seed)
    belief, synthetic = (torch.sigmoid(torch.randn(3000, generator=generator) - 6) for _ in range(2))
    assert torch.equal(beyond_chance(belief, synthetic), torch.ones(3000))
    told = torch.sigmoid(torch.randn(60, generator=generator) - 1)  # 2 % that are no chance
    found = beyond_chance(torch.cat([belief, told]), synthetic)
    assert int((found[3000:] > 0).sum()) >= 40 and int((found[:3000] > 0).sum()) < 60


def test_beliefs_that_are_all_the_same():
    same = torch.full((20,), 0.01)
    assert torch.equal(beyond_chance(same, same), torch.ones(20))
    assert torch.equal(beyond_chance(same, torch.full((20,), 0.001)), torch.ones(20))
    assert torch.equal(beyond_chance(same, torch.full((20,), 0.1)), torch.ones(20))


def test_groups_are_not_those_of_the_pairs_where_synthetic_mismatches_are_in_the_upper_one():
    generator = torch.Generator().manual_seed(0)
    odds = torch.cat([torch.randn(60, generator=generator) - 9, torch.randn(140, generator=generator) - 2])
    label = torch.sigmoid(odds)
    lower, upper = (torch.sigmoid(torch.randn(200, generator=generator) + at) for at in (-9, -2))
    assert upper_group(label) is not None and upper_group(label, upper) is None
    assert torch.equal(upper_group(label, lower), upper_group(label))
    few = torch.cat([lower[:160], upper[:40]])
    assert upper_group(label, few) is not None
    assert upper_group(label, torch.cat([lower[:140], upper[:60]])) is None
