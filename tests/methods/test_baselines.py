"""Triplet and InfoNCE: which loss in which epoch, and what they remember."""

import pytest
import torch

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.losses import hinge_ranking, info_nce
from truepair.methods import build_method
from truepair.methods.base import EpochPosition

SIMILARITY = torch.rand(4, 4, generator=torch.Generator().manual_seed(0))


class GivenForward:
    similarity = SIMILARITY
    largest = None
    batch = type("Batch", (), {"ids": torch.tensor([6, 1, 3, 0])})()


def prepared(name, options=None):
    method, memory = build_method(name, options), CorrespondenceMemory(8)
    method.prepare(memory)
    return method, memory, method.stages(5, 3)


def test_triplet_warms_up_on_all_negatives():
    method, memory, stages = prepared("triplet", {"warm_up_epochs": 2, "margin": 0.3})
    losses = [
        method.batch_loss(GivenForward(), EpochPosition(0, epoch, stages), memory).per_pair for epoch in (1, 2, 3)
    ]
    assert torch.equal(losses[0], hinge_ranking(SIMILARITY, margin=0.3, negatives=None))
    assert torch.equal(losses[1], losses[0])
    assert torch.equal(losses[2], hinge_ranking(SIMILARITY, margin=0.3))


def test_infonce_is_its_loss():
    method, memory, stages = prepared("infonce", {"temperature": 0.1})
    result = method.batch_loss(GivenForward(), EpochPosition(0, 1, stages), memory)
    assert torch.equal(result.per_pair, info_nce(SIMILARITY, temperature=0.1))


@pytest.mark.parametrize("name", ["triplet", "infonce"])
def test_baselines_believe_what_they_last_saw(name):
    method, memory, stages = prepared(name)
    method.batch_loss(GivenForward(), EpochPosition(0, 1, stages), memory)
    belief = method.belief(memory)
    expected = matching_probability(SIMILARITY, temperature=0.05)
    assert torch.allclose(belief[[6, 1, 3, 0]], expected)
    assert belief[[2, 4, 5, 7]].tolist() == [1.0] * 4
    assert torch.equal(method.taken_as_matched(memory), belief >= 0.5)
