"""Our losses beside the values that the released codes give on the same three matrices, pair by pair, in float64.

released_values.json has what the class or function of the public repository (commit given) returns on these inputs,
before it adds up the pairs; a single number where one of the two gives no more. Labels, margins and scores
differ between the pairs where the name says so, since equal ones cannot show along which axis they are broadcast.
Where the released code adds 10⁻¹⁰ or 10⁻⁷ under a logarithm, the two agree to about 10⁻⁸, else to rounding. What the
release does otherwise and we do not follow stands in docs/methods.md and is left out here, but for constant factors.
"""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

from tests.methods.given import GivenForward, GivenNetwork, remembering
from truepair.correspondence.consistency import bidirectional_consistency
from truepair.correspondence.slack import foremost, predicted_label
from truepair.engines.similarity_head import SimilarityHead
from truepair.losses import (
    complementary_contrastive,
    evidential,
    hinge_ranking,
    info_nce,
    robust_info_nce,
    soft_margin,
)
from truepair.losses.clustering import multimodal_contrast, robust_clustering
from truepair.losses.meta import meta_cross_entropy, score_margin
from truepair.losses.rematching import rematching, symmetric_cross_entropy
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.methods.in2r.prototypes import Refiner, nearest_partners
from truepair.methods.npc.impact import impact_weight

PAIRS = 12
ROW, COLUMN = torch.arange(PAIRS)[:, None], torch.arange(PAIRS)[None]
S = ((7 * ROW + 11 * COLUMN + 3 * ROW * COLUMN) % 97).double() / 97
OTHER = ((5 * ROW + 3 * COLUMN + 2 * ROW * COLUMN) % 89).double() / 89
RANDOM = torch.rand(PAIRS, PAIRS, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
MATRICES = {"S": (S, OTHER), "OTHER": (OTHER, RANDOM), "random": (RANDOM, S)}  # the second for what takes two
UNEQUAL = 0.15 + 0.07 * torch.arange(PAIRS).double()
CLEAN = (torch.arange(PAIRS) % 3 > 0).double()
CLASSES = 7 * torch.arange(PAIRS) % 5
DIAGONAL = (PAIRS - 1) / PAIRS  # the released means over negatives count the diagonal, as a zero


def equal(value):
    return torch.full((PAIRS,), value, dtype=torch.float64)


def all_negatives(s):
    return hinge_ranking(s, margin=0.2, negatives=PAIRS)


def bank_loss(s):
    return info_nce(s, temperature=0.05)


def warm_up_of_bicro(s):
    return build_method("bicro", {"warm_up_share": 0.3, "margin": 0.2}).warm_up_loss(s)


def head_of_fractions():
    """A head of five hidden units whose weights are fractions of 23."""
    head = SimilarityHead(PAIRS, 5).double()
    for place, parameter in enumerate(head.parameters()):
        numbers = (37 * torch.arange(parameter.numel()) + 11 * place) % 23
        parameter.data = (numbers.double() / 23 - 0.4).reshape(parameter.shape)
    return head


def evidential_both_ways_of(evidence, label):
    return evidential(evidence + 1, label.diag()) + evidential(evidence.T + 1, label.diag())


def evidential_both_ways(s, label):
    return evidential_both_ways_of(torch.exp(torch.tanh(2 * s - 1) / 0.1), label)


def plan(s):
    """A tenth of all mass, none of it on the diagonal."""
    moved = s.T.clone().fill_diagonal_(0)
    return moved / moved.sum() * 0.1


def osa_weights(s):
    """The weights of scores 40 · s where unrelated pairs lie at 15; kept in float32, as all that is remembered."""
    method = build_method("osa", {"weight": "released"})
    memory = remembering(method, PAIRS, excess=(40 * s.diagonal() - 15).clamp(min=0))
    return method.batch_weight(torch.arange(PAIRS), memory)


def sides(s, other):
    """Vectors of images and of texts, (12, 8) each."""
    return normalize(s[:, :8] - 0.3, dim=1), normalize(other[:, :8] - 0.2, dim=1)


def in2r_refiner():
    """A refiner whose weights are fractions of 23."""
    refiner = Refiner(8).double().eval()
    layers = [refiner.key, refiner.norm, refiner.output, refiner.query, refiner.value]
    for place, parameter in enumerate(part for layer in layers for part in (layer.bias, layer.weight)):
        numbers = (37 * torch.arange(parameter.numel()) + 11 * place) % 23
        parameter.data = (numbers.double() / 23 - 0.4).reshape(parameter.shape)
    return refiner


def in2r_rematched(refiner):
    """½ R of images with the prototypes of their texts and of texts with those of their images; a bank of 7, k = 3."""

    def loss(s, other):
        images, texts = sides(s, other)
        bank_images, bank_texts = normalize(s.T[:7, :8] - 0.4, dim=1), normalize(other.T[:7, 2:10] - 0.5, dim=1)
        others = torch.zeros(PAIRS, 7, dtype=torch.bool)
        to_text = refiner(nearest_partners(images, bank_images, bank_texts, others, 3))
        to_image = refiner(nearest_partners(texts, bank_texts, bank_images, others, 3))
        return (symmetric_cross_entropy(images @ to_text.T) + symmetric_cross_entropy(texts @ to_image.T)) / 2

    return loss


KNOWN = (torch.arange(PAIRS) < 8).float()  # of RCSL, the first eight are known to be paired


class BesidePartners(GivenForward):
    """A batch of RCSL whose pairs are their own partners by number, with the vectors of others."""

    def __init__(self, s, other):
        images, texts = sides(s, other)
        partners = images.roll(5, 0), texts.roll(3, 0)
        self.leaves = [side.clone().requires_grad_() for side in (images, texts, *partners)]
        images, texts = self.leaves[:2]
        super().__init__([GivenNetwork(images @ texts.T, images, texts)], torch.arange(PAIRS))

    def beside(self, ids):
        images, texts = (side[ids] for side in self.leaves[2:])
        return GivenForward([GivenNetwork(images @ texts.T, images, texts)], ids)


def rcsl_whole(s, other, epoch=16):
    """The loss of all pairs, and the vectors of images, texts, partner images and partner texts."""
    method, forward = build_method("rcsl", {"paired": "known"}), BesidePartners(s, other)
    loss = method.batch_loss(forward, EpochPosition(0, epoch, (Stage(16),)), remembering(method, PAIRS, weight=KNOWN))
    return loss.per_pair.sum(), forward.leaves


def rcsl_slope(which):
    def slope(s, other):
        whole, leaves = rcsl_whole(s, other)
        return torch.autograd.grad(whole, leaves[which])[0].sum(dim=1)

    return slope


def rcsl_ranking(s, _):
    method = build_method("rcsl", {"align_weight": 0.0})
    vectors = torch.zeros(PAIRS, 8).double()
    return method.paired_loss(s, vectors, vectors, torch.arange(8))


OWN = {
    "rcl log": lambda s, _: complementary_contrastive(s, form="log"),
    "rcl tan": lambda s, _: complementary_contrastive(s, form="tan"),
    "rcl mae": lambda s, _: complementary_contrastive(s, form="mae"),
    "rcl exp": lambda s, _: complementary_contrastive(s, form="exp"),
    "rcl gce": lambda s, _: complementary_contrastive(s, form="gce"),
    "ncr losses": lambda s, _: DIAGONAL * all_negatives(s),
    "ncr predictions": lambda s, _: predicted_label(DIAGONAL * all_negatives(s), 0.2),
    "ncr soft margin": lambda s, _: hinge_ranking(s, margin=soft_margin(equal(0.6), 0.2)),
    # There labels (B, 1) stand for rows both ways, so that a text has the margin of its negative. The values are its
    # image → text direction alone, on the matrix and on its transpose, added.
    "ncr soft margin of unequal labels": lambda s, _: hinge_ranking(s, margin=soft_margin(UNEQUAL, 0.2)),
    "bicro warm-up": lambda s, _: DIAGONAL * warm_up_of_bicro(s),
    "bicro anchors": lambda s, _: foremost(-all_negatives(s)).sort().values,
    # Cosines of opposite signs have the ratio a/b there, −1 here; no label below changes by it.
    "bicro consistency": lambda s, _: bidirectional_consistency(
        s[:, :5] - 0.3, s[:, 3:9] - 0.2, torch.tensor([1, 4, 7])
    ),
    "mscn warm-up": lambda s, _: DIAGONAL * all_negatives(s),
    "mscn margin": lambda s, _: hinge_ranking(s, margin=score_margin(equal(0.7), 0.2)),
    # There scores (B,) stand for columns both ways, so that an image has the margin of its negative. The values are its
    # text → image direction alone, on the matrix and on its transpose, added.
    "mscn margin of unequal scores": lambda s, _: hinge_ranking(s, margin=score_margin(UNEQUAL, 0.2)),
    "mscn head": lambda s, _: torch.sigmoid(head_of_fractions()(s)).squeeze(1),
    "mscn meta loss": lambda s, _: meta_cross_entropy(s),
    # One number for all pairs: its gradient, added up over the texts, shows which pairs it takes for what.
    "mscn meta loss by image": lambda s, _: torch.func.grad(meta_cross_entropy)(s).sum(dim=1),
    "npc bank loss": lambda s, _: bank_loss(s),
    "npc weights": lambda s, other: impact_weight(
        (bank_loss(s), bank_loss(other)), (bank_loss(s.roll(1, 0)), bank_loss(other.roll(2, 1)))
    ),
    "npc averaged loss": lambda s, _: bank_loss(s).mean(),
    "decl evidential": lambda s, _: evidential_both_ways(s, CLEAN),
    "decl evidential of unequal labels": lambda s, _: evidential_both_ways(s, UNEQUAL),
    "decl hinge": lambda s, _: hinge_ranking(torch.tanh(s), margin=0.2, negatives=5),
    "l2rm warm-up": lambda s, _: symmetric_cross_entropy(s),
    "l2rm rematching": lambda s, _: rematching(s, plan(s), share=False),
    # q 0.1 and λ 0.01; there without our factor, times 2τ, and both directions are added
    "rince": lambda s, other: (
        4 * math.exp(0.1 / 0.07) * robust_info_nce(normalize(s[:, :5] - 0.3) @ normalize(other[:, :5] - 0.2).T)
    ),
    "osa weights": lambda _, other: osa_weights(other),
    "osa loss": lambda s, other: osa_weights(other) * info_nce(s, temperature=0.05),
    "mrl clustering": lambda s, other: sum(robust_clustering(side[:, :5] / 0.5, CLASSES) for side in (s, other)),
    "mrl contrast": lambda s, other: multimodal_contrast(*sides(s, other), temperature=0.5),
    "in2r warm-up": lambda s, _: symmetric_cross_entropy(s),
    "in2r hinges": lambda s, _: hinge_ranking(s, margin=0.2),
    "in2r hinges within a modality": lambda s, _: hinge_ranking(s, margin=0.3),
    "in2r losses": lambda s, _: DIAGONAL * all_negatives(s),
    "in2r rematching": in2r_rematched(lambda neighbours: normalize(neighbours.mean(dim=1), dim=1)),
    "in2r refined": in2r_rematched(in2r_refiner()),
    "rcsl ranking": rcsl_ranking,
    "rcsl matching": lambda s, _: complementary_contrastive(s, temperature=0.03, form="mae") / 2,
    "rcsl before the mining": lambda s, other: rcsl_whole(s, other, epoch=10)[0],
    "rcsl whole": lambda s, other: rcsl_whole(s, other)[0],
    "rcsl whole by image": rcsl_slope(0),
    "rcsl whole by text": rcsl_slope(1),
    "rcsl whole by partner image": rcsl_slope(2),
    "rcsl whole by partner text": rcsl_slope(3),
}
RELEASED = json.loads(Path(__file__).with_name("released_values.json").read_text(encoding="utf-8"))
REMEMBERED = {"osa weights", "osa loss"}
UNDER_LOGARITHMS = {"rcl log", "rcl gce", "l2rm warm-up", "in2r warm-up", "in2r rematching", "in2r refined"}
ONE_NUMBER = {"mscn meta loss", "npc averaged loss", "rcsl before the mining", "rcsl whole"}


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("name", OWN)
def test_values_are_those_of_the_released_code(name, matrix):
    tolerance = 1e-6 if name in REMEMBERED else 1e-7 if name in UNDER_LOGARITHMS else 1e-12
    own = OWN[name](*MATRICES[matrix]).tolist()
    assert own == pytest.approx(RELEASED[name]["values"][matrix], rel=tolerance)


def test_every_released_value_is_compared_pair_by_pair_where_it_can_be():
    assert OWN.keys() == RELEASED.keys()
    for name, released in RELEASED.items():
        assert released["values"].keys() == MATRICES.keys()
        assert all(isinstance(values, float) == (name in ONE_NUMBER) for values in released["values"].values())
