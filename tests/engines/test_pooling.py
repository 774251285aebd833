"""Pooling against plain loops over each item's own elements."""

import pytest
import torch

from truepair.engines.pooling import POOLINGS, GeneralizedPooling, sort_ascending


def items(lengths, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    elements = torch.randn(len(lengths), longest, width, generator=generator, dtype=torch.float64)
    return elements, torch.tensor(lengths)


def loop_pool(kind, module, elements, lengths):
    rows = []
    for item, length in zip(elements, lengths.tolist(), strict=True):
        own = item[:length]
        if kind == "mean":
            rows.append(own.mean(dim=0))
        elif kind == "max":
            rows.append(own.max(dim=0).values)
        else:
            weights = module.rank_weights(torch.tensor([length]), length)[0].tolist()
            columns = [sorted(own[:, d].tolist(), reverse=True) for d in range(own.shape[1])]
            values = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in columns]
            rows.append(torch.tensor(values, dtype=torch.float64))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", POOLINGS)
@pytest.mark.parametrize("lengths", [[1], [5], [3, 5, 1, 4], [2, 2]])
def test_pooling_equals_plain_loop(kind, lengths):
    torch.manual_seed(1)
    module = POOLINGS[kind]().double()
    elements, counts = items(lengths)
    torch.testing.assert_close(
        module(elements, counts), loop_pool(kind, module, elements, counts), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", POOLINGS)
def test_padding_has_no_influence(kind):
    """Whatever stands beyond an item's length, and however long the padding, the result is the same."""
    module = POOLINGS[kind]().double()
    elements, lengths = items([3, 5, 1])
    expected = module(elements, lengths)
    for row, length in enumerate(lengths.tolist()):
        elements[row, length:] = 1e6
    torch.testing.assert_close(module(elements, lengths), expected, rtol=0, atol=1e-12)
    longer = torch.cat([elements, torch.full((3, 4, 4), -7.0, dtype=torch.float64)], dim=1)
    torch.testing.assert_close(module(longer, lengths), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", POOLINGS)
def test_gradient(kind):
    module = POOLINGS[kind]().double()
    elements, lengths = items([3, 1, 4])
    assert torch.autograd.gradcheck(lambda x: module(x, lengths), (elements.requires_grad_(),))


def test_rank_weights_sum_to_one_over_the_elements_there_are():
    module = GeneralizedPooling()
    weights = module.rank_weights(torch.tensor([1, 4, 7, 4]), 7)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(4))
    assert (weights[0, 1:] == 0).all()
    assert (weights[1, 4:] == 0).all()
    assert torch.equal(weights[1], weights[3])


def test_generalized_pooling_can_be_mean():
    module = GeneralizedPooling().double()
    torch.nn.init.zeros_(module.score.weight)
    elements, lengths = items([3, 5, 1])
    torch.testing.assert_close(module(elements, lengths), POOLINGS["mean"]()(elements, lengths))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_sorting_equals_torch_with_ties(dtype):
    values = torch.randint(-3, 4, (2, 3, 20), generator=torch.Generator().manual_seed(0)).to(dtype)
    assert torch.equal(sort_ascending(values), values.sort(dim=-1).values)
    assert torch.equal(sort_ascending(values.transpose(1, 2)), values.transpose(1, 2).sort(dim=-1).values)
