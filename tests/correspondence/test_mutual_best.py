"""The clean set of a batch against a plain loop."""

import pytest
import torch

from truepair.correspondence.mutual_best import mutual_best
from truepair.errors import InputError


def loop(similarity):
    s = similarity.tolist()
    count = len(s)
    return [all(s[i][i] > s[i][j] and s[i][i] > s[j][i] for j in range(count) if j != i) for i in range(count)]


@pytest.mark.parametrize("size", [1, 2, 9, 64])
def test_it_equals_a_plain_loop(size):
    generator = torch.Generator().manual_seed(size)
    similarity = torch.rand(size, size, generator=generator) + 0.7 * torch.eye(size) * torch.rand(
        size, generator=generator
    )
    found = mutual_best(similarity)
    assert found.tolist() == loop(similarity)
    assert size < 9 or 0 < int(found.sum()) < size


def test_similarities_that_are_all_alike_make_no_pair_clean():
    assert not bool(mutual_best(torch.ones(4, 4)).any())
    assert bool(mutual_best(torch.ones(1, 1)).all())


def test_one_direction_is_not_enough():
    assert mutual_best(torch.tensor([[0.5, 0.1], [0.9, 1.0]])).tolist() == [False, True]
    assert mutual_best(torch.tensor([[0.5, 0.9], [0.1, 1.0]])).tolist() == [False, True]


def test_nan_is_refused():
    with pytest.raises(InputError, match=r"similarity\[0, 1\]"):
        mutual_best(torch.tensor([[1.0, float("nan")], [0.0, 1.0]]))
