"""Our losses beside the values that the released codes give on the same matrices, in float64.

Each value below was computed by running the class of that name of the public repository (state given) on these inputs.
Where the released code adds 10⁻¹⁰ or 10⁻⁷ under a logarithm, the two agree to about 10⁻⁸, else to rounding. What the
release does otherwise and we do not follow stands in docs/methods.md and is left out here, but for constant factors.
The code of IN²R and of RCSL could not be had to run it: their tests have plain loops alone.
"""

import math

import pytest
import torch
from torch.nn.functional import normalize

from tests.methods.given import remembering
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
from truepair.losses.meta import meta_cross_entropy, score_margin
from truepair.losses.rematching import rematching, symmetric_cross_entropy
from truepair.methods import build_method
from truepair.methods.npc.impact import impact_weight

PAIRS = 12
ROW, COLUMN = torch.arange(PAIRS)[:, None], torch.arange(PAIRS)[None]
S = ((7 * ROW + 11 * COLUMN + 3 * ROW * COLUMN) % 97).double() / 97
OTHER = ((5 * ROW + 3 * COLUMN + 2 * ROW * COLUMN) % 89).double() / 89
PLAN = S.T.clone().fill_diagonal_(0)
PLAN = PLAN / PLAN.sum() * 0.1
LABEL = (torch.arange(PAIRS) % 3 > 0).double().diag()
EVIDENCE = torch.exp(torch.tanh(2 * S - 1) / 0.1)
ALL_NEGATIVES = hinge_ranking(S, margin=0.2, negatives=PAIRS)
DIAGONAL = (PAIRS - 1) / PAIRS  # the released means over negatives count the diagonal, as a zero


def head_of_fractions():
    """A head of five hidden units whose weights are fractions of 23."""
    head = SimilarityHead(PAIRS, 5).double()
    for place, parameter in enumerate(head.parameters()):
        numbers = (37 * torch.arange(parameter.numel()) + 11 * place) % 23
        parameter.data = (numbers.double() / 23 - 0.4).reshape(parameter.shape)
    return head


def osa_weights():
    """The weights of scores 40 · OTHER where unrelated pairs lie at 15; kept in float32, as all that is remembered."""
    method = build_method("osa", {"weight": "released"})
    memory = remembering(method, PAIRS, excess=(40 * OTHER.diagonal() - 15).clamp(min=0))
    return method.batch_weight(torch.arange(PAIRS), memory)


RELEASED = {  # 1096a24, 2023-09-17
    "rcl log": (3.491810566372477, lambda: complementary_contrastive(S, form="log").mean()),
    "rcl tan": (2.28231764024694, lambda: complementary_contrastive(S, form="tan").mean()),
    "rcl mae": (1.859388007306523, lambda: complementary_contrastive(S, form="mae").mean()),
    "rcl exp": (9.06950997731513, lambda: complementary_contrastive(S, form="exp").mean()),
    "rcl gce": (2.447770707889746, lambda: complementary_contrastive(S, form="gce").mean()),
    # 60256ba, 2023-11-06; with equal labels: others are broadcast there over columns
    "ncr losses": (6.154295532646048, lambda: DIAGONAL * ALL_NEGATIVES.sum()),
    "ncr predictions": (4.0489826676714396, lambda: predicted_label(DIAGONAL * ALL_NEGATIVES, 0.2).sum()),
    "ncr soft margin": (
        11.909492538484633,
        lambda: hinge_ranking(S, margin=soft_margin(torch.full((PAIRS,), 0.6, dtype=torch.float64), 0.2)).sum(),
    ),
    # 0231631, 2023-06-04
    "bicro warm-up": (0.2493127147766323, lambda: DIAGONAL * ALL_NEGATIVES.sort().values[:3].sum()),
    "bicro anchors": (3 + 10, lambda: foremost(-ALL_NEGATIVES).sum()),
    "bicro consistency": (
        5.441473291207982,
        lambda: bidirectional_consistency(S[:, :5] - 0.3, S[:, 3:9] - 0.2, torch.tensor([1, 4, 7])).sum(),
    ),
    # 01febc2, 2024-03-28; with equal scores: others are broadcast there over columns
    "mscn warm-up": (6.1542955326460484, lambda: DIAGONAL * ALL_NEGATIVES.sum()),
    "mscn margin": (
        14.374760042659084,
        lambda: hinge_ranking(S, margin=score_margin(torch.full((PAIRS,), 0.7, dtype=torch.float64), 0.2)).sum(),
    ),
    "mscn head": (6.889812640599189, lambda: torch.sigmoid(head_of_fractions()(S)).sum().detach()),
    "mscn meta loss": (0.7321273897244752, lambda: meta_cross_entropy(S)),
    # 823d781, 2025-07-02
    "npc bank loss": (107.46849560344367, lambda: info_nce(S, temperature=0.05).sum()),
    "npc weights": (
        9.39750602631157,
        lambda: impact_weight(
            (info_nce(S, temperature=0.05), info_nce(OTHER, temperature=0.05)),
            (info_nce(S.roll(1, 0), temperature=0.05), info_nce(OTHER.roll(2, 1), temperature=0.05)),
        ).sum(),
    ),
    "npc averaged loss": (8.95570796695364, lambda: info_nce(S, temperature=0.05).mean()),
    # 1b0a775, 2024-03-21
    "decl evidential": (
        126.07542458117892,
        lambda: (evidential(EVIDENCE + 1, LABEL) + evidential(EVIDENCE.T + 1, LABEL)).sum(),
    ),
    "decl hinge": (9.548518700075492, lambda: hinge_ranking(torch.tanh(S), margin=0.2, negatives=5).sum()),
    # a766c22, 2024-03-28
    "l2rm warm-up": (23.940604836928706, lambda: symmetric_cross_entropy(S).mean()),
    "l2rm rematching": (9.12720498688243, lambda: rematching(S, PLAN, share=False).mean()),
    # c7f8534, 2022-01-15, q 0.1 and λ 0.01; there without our factor, times 2τ, and both directions are added
    "rince": (
        1.2758416352386304,
        lambda: (
            4
            * math.exp(0.1 / 0.07)
            * robust_info_nce(normalize(S[:, :5] - 0.3) @ normalize(OTHER[:, :5] - 0.2).T).mean()
        ),
    ),
    # fcf9ef7, with the code as it was published in 2024
    "osa weights": (0.48455609573453945, lambda: osa_weights().sum()),
    "osa loss": (0.42748052588317687, lambda: (osa_weights() * info_nce(S, temperature=0.05)).mean()),
}
REMEMBERED = {"osa weights", "osa loss"}
UNDER_LOGARITHMS = {"rcl log", "rcl gce", "l2rm warm-up"}


@pytest.mark.parametrize("name", RELEASED)
def test_values_are_those_of_the_released_code(name):
    released, own = RELEASED[name]
    tolerance = 1e-6 if name in REMEMBERED else 1e-7 if name in UNDER_LOGARITHMS else 1e-12
    assert float(own()) == pytest.approx(released, rel=tolerance)
