"""How much an invariant and an exclusive part of one modality still tell about each other (DisNCL, figure 4).

Disentangling should make I(V_S; V_X) and I(T_S; T_X) small. The paper estimates them with MINE. Parts are some 512 wide
and a test split has some 500 to 5,000 rows: so few rows cannot train a network on so many columns, and the logarithm in
MINE makes of that anything between 0 and far too much. Both parts are therefore reduced first to their 16 leading
principal components, fitted on these rows. Reducing loses information, so what is estimated stays a lower bound.

Measured on 512-wide mixtures of 16 Gaussian latents, three seeds each, with known information (nats):

rows   true   16 components   all 512
500    0      0.00            0.00
500    1.15   0.18 – 0.37     0.00
500    4.09   2.1 – 2.3       1.7
500    9.31   3.2 – 5.4       4.7
1,000  1.15   0.50 – 0.67     0.73
1,000  4.09   2.9 – 3.3       3.2
1,000  9.31   4.7 – 5.8       4.3

So an estimate is too low, the more so the fewer the rows, and a small one more than a large one: the share that is left
of another run's looks smaller than it is. Compare runs on the same rows only. On runs on `scenes` (500 rows) 16
components kept 85 to 95 % of the variance and gave the largest values; 64 gave half of them or less, with a
Jensen–Shannon estimate of a third, and all 512 once gave 0 where the Jensen–Shannon estimate was at its limit.

The parts are brought to spread one, with noise (`blurred`). Two deterministic parts of the same features tell each
other apart in differences of any size, and standardised columns make the smallest as loud as the largest; what is left
with noise is what one can use. Without noise the estimate is given too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array
from truepair.evaluation import jensen_shannon_information, mine
from truepair.evaluation.mutual_information import ESTIMATE_PAIRS, TRAINED_SHARE, VALIDATED_SHARE
from truepair.losses.information import blurred
from truepair.pages.analysis.subject import Split, one_caption_each
from truepair.seeding import generator

COMPONENTS = 16
PART_NOISE = 0.5
"""Deviation of the noise on parts that estimates and probes are for, in units of their spread."""
ESTIMATES = 3  # with seeds of their own, which also divide the rows anew
MOST_ROWS = 5000
SIDES = {"image": ("V_S", "V_X"), "text": ("T_S", "T_X")}


@dataclass(frozen=True)
class Estimate:
    """Mean, lowest and highest of the estimates of several seeds."""

    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Leakage:
    """What the two parts of one modality tell about each other.

    Attributes:
        parts: their names, (V_S, V_X) or (T_S, T_X).
        rows: images, each one row; for texts the first caption of each.
        kept: share of the variance of each part, in [0, 1], that its leading components keep.
        mine: I in nats.
        jensen_shannon: in nats, 0 = independent, log 2 = 0.693 = each tells the other apart from all others.
        noise: deviation of the noise on the parts, in units of their spread, that the estimates above are for.
        without_noise: Jensen–Shannon of the parts as they are: also what hides in differences too small to use.
        shuffled: MINE's estimate when the partners are shuffled: what it gives where there is nothing.
        ceiling: logarithm of the number of marginal pairs: the largest MINE value these rows can give.
    """

    parts: tuple[str, str]
    rows: int
    kept: tuple[float, float]
    mine: Estimate
    jensen_shannon: Estimate
    noise: float
    without_noise: float
    shuffled: float
    ceiling: float


def leakage(split: Split, *, noise: float = 0.0, seed: int) -> dict[str, Leakage]:
    """Leakage of the image side and of the text side, by `image` and `text`; at most 5,000 images, drawn at random.

    Args:
        split: the pairs and their parts.
        noise: deviation of the noise on the parts, ≥ 0, in units of their spread.
        seed: of all draws, ≥ 0.

    Raises:
        InputError: fewer than 64 images have a caption.
    """
    rows = one_caption_each(split.pairs)
    chosen = np.sort(generator(seed, "leakage rows").permutation(len(rows))[:MOST_ROWS])
    found = {}
    for side, part, index in (("image", split.images, rows.images), ("text", split.texts, rows.texts)):
        taken = torch.from_numpy(index[chosen])
        found[side] = leakage_between(part.invariant[taken], part.exclusive[taken], SIDES[side], noise=noise, seed=seed)
    return found


def leakage_between(
    invariant: Tensor, exclusive: Tensor, parts: tuple[str, str], *, noise: float = 0.0, seed: int
) -> Leakage:
    """What two parts, (N ≥ 64, ·) each, row by row of the same items, tell about each other."""
    itself = principal_components(invariant), principal_components(exclusive)
    if noise:
        draws = torch.Generator().manual_seed(seed)
        invariant, exclusive = (blurred(part, noise, draws) for part in (invariant, exclusive))
    (x, x_kept), (y, y_kept) = principal_components(invariant), principal_components(exclusive)
    seeds = range(seed, seed + ESTIMATES)
    shuffle = generator(seed, "leakage shuffle").permutation(len(y))
    return Leakage(
        parts,
        len(x),
        (x_kept, y_kept),
        mine=estimate([mine(x, y, seed=one) for one in seeds]),
        jensen_shannon=estimate([jensen_shannon_information(x, y, seed=one) for one in seeds]),
        noise=noise,
        without_noise=jensen_shannon_information(itself[0][0], itself[1][0], seed=seed),
        shuffled=mine(x, y[shuffle], seed=seed),
        ceiling=ceiling(len(x)),
    )


def principal_components(part: Tensor, count: int = COMPONENTS) -> tuple[Array, float]:
    """The coordinates of N rows on their leading components, (N, ≤ count) float64, and the share of variance kept.

    Components without variance are 0 and not rounding errors; a part that is constant keeps a share of 1 of nothing.
    """
    values = part.double().numpy()
    values = values - values.mean(axis=0)
    left, singular, _ = np.linalg.svd(values, full_matrices=False)
    real = singular > 1e-6 * math.sqrt(len(values))  # parts are vectors of length 1 at most
    whole = float((singular**2).sum())
    kept = float((singular[:count] ** 2).sum()) / whole if real.any() else 1.0
    scores: Array = (left * np.where(real, singular, 0.0))[:, :count]
    return scores, kept


def estimate(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.mean(values)), min(values), max(values))


def ceiling(rows: int) -> float:
    """The largest value `mine` gives for this many rows: log of the number of marginal pairs it estimates with."""
    held_out = rows - int((TRAINED_SHARE + VALIDATED_SHARE) * rows)
    return math.log(held_out * min(max(ESTIMATE_PAIRS // held_out, 1), held_out - 1))
