"""CRCL, GSC and UGNCL beside the values of their released codes, pair by pair; DisNCL and UOT-RCL have none.

As in `test_released_values`. The released step of CRCL and of GSC is run whole, on given similarities. That of UGNCL
cannot be (docs/methods/ugncl.md); its evidential loss, the fusion of its views and the ranking of its warm-up can.
"""

import json
from pathlib import Path

import pytest
import torch
from torch.nn.functional import softplus

from tests.losses.test_released_values import CLEAN, MATRICES, PAIRS, UNEQUAL, evidential_both_ways_of
from tests.methods.given import GivenForward, GivenNetwork, remembering
from truepair.correspondence import matching_probability
from truepair.correspondence.opinions import bidirectional, fuse_opinions
from truepair.correspondence.structure import intra_modal_similarity
from truepair.losses import active_complementary, hinge_ranking
from truepair.losses.consistency import cross_modal_consistency, intra_modal_consistency
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage

IDS = torch.arange(PAIRS)


def crcl_refined(s):
    """The method after an epoch in a piece that is not the first, and its memory."""
    method = build_method("crcl", {"momentum": 0.8, "freeze_epochs": 2})
    memory = remembering(method, PAIRS, label=UNEQUAL, seen_probability=matching_probability(s, temperature=0.05))
    place = EpochPosition(1, 3, (Stage(7), Stage(7)))
    method.start_epoch(place, memory)
    return memory.read("label"), method.batch_loss(GivenForward([GivenNetwork(s)], IDS), place, memory).per_pair


def crcl_gradient(s):
    return torch.func.grad(lambda matrix: active_complementary(matrix, UNEQUAL).sum())(s).sum(dim=1)


def structures(s, other):
    """Similarities of images among themselves and of texts."""
    return torch.sigmoid(3 * s.T - 1), torch.sigmoid(3 * other - 1)


def gsc_labels(s, other):
    """Labels after an epoch: the lower of two indicators, each smoothed; the mixture as released.

    That one starts from two means that it finds from a random start; the values are of the best two of twenty.
    """
    method = build_method("gsc", {"mixture": "released"})
    structure = intra_modal_similarity(*structures(s, other), UNEQUAL)
    memory = remembering(
        method,
        PAIRS,
        seen_structure=structure,
        seen_probability=matching_probability(s, temperature=0.07),
        intra_modal=UNEQUAL,
        cross_modal=UNEQUAL.flip(0),
    )
    method.relabel((0,), EpochPosition(0, 3, (Stage(9),)), memory)
    return memory.read("label")


def evidence(s):
    return torch.exp(softplus(3 * s - 2) / 0.5)


def fused(s, other):
    return fuse_opinions(*(bidirectional(evidence(matrix)) for matrix in (s, other)))


OWN = {
    "crcl loss of given labels": lambda s, _: active_complementary(s, UNEQUAL),
    "crcl gradient of given labels": lambda s, _: crcl_gradient(s),
    "crcl refined labels": lambda s, _: crcl_refined(s)[0],
    "crcl loss of refined labels": lambda s, _: crcl_refined(s)[1],
    "gsc cross-modal loss": lambda s, _: cross_modal_consistency(s, UNEQUAL),
    "gsc intra-modal loss": lambda s, other: intra_modal_consistency(*structures(s, other), UNEQUAL),
    "gsc intra-modal similarity": lambda s, other: intra_modal_similarity(*structures(s, other), UNEQUAL),
    "gsc matching probability": lambda s, _: matching_probability(s, temperature=0.07),
    "gsc labels": gsc_labels,
    "ugncl evidential": lambda s, _: evidential_both_ways_of(evidence(s), CLEAN),
    "ugncl belief": lambda s, other: fused(s, other)[0].diagonal(),
    "ugncl uncertainty": lambda s, other: fused(s, other)[1],
    "ugncl warm-up ranking": lambda s, _: hinge_ranking(torch.tanh(s), margin=0.2, negatives=5),
}
RELEASED = json.loads(Path(__file__).with_name("released_values_of_the_five.json").read_text(encoding="utf-8"))
REMEMBERED = {"crcl refined labels", "crcl loss of refined labels", "gsc labels"}  # in float32, as all that is kept
BESIDE_SMALL_NUMBERS = {"crcl loss of given labels", "crcl gradient of given labels"}  # 10⁻¹⁰ in denominators there


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("name", OWN)
def test_values_are_those_of_the_released_code(name, matrix):
    tolerance = 1e-6 if name in REMEMBERED else 1e-8 if name in BESIDE_SMALL_NUMBERS else 1e-12
    own = OWN[name](*MATRICES[matrix]).tolist()
    assert own == pytest.approx(RELEASED[name]["values"][matrix], rel=tolerance)


def test_every_released_value_is_compared_pair_by_pair():
    assert OWN.keys() == RELEASED.keys()
    for released in RELEASED.values():
        assert {name: len(values) for name, values in released["values"].items()} == dict.fromkeys(MATRICES, PAIRS)
