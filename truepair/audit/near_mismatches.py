"""Whether some captions belong to another pair of the same kind of thing, and how many.

A near mismatch scores between a matched pair and a random mismatch, so that no low end belongs to it alone. The shares
of the three kinds are found by maximum likelihood, the densities of the two mismatched kinds known from the yardstick
and that of matched pairs a tilt of the near ones', m(s) ∝ n(s) exp(β s): a density ratio model (Qin, Biometrika 1998).
A tilt leaves matched pairs a thinner low end than they have where a model learned little, and the difference is then
taken for near mismatches. So they are believed in only where they are many, where they outnumber the random ones, and
where they explain why given pairs are not all told from random mismatches: a near mismatch is taken for a random one
about once in eight, so that 40 % of them cost 5 % of the skill; a weak model loses as much with matched pairs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.audit.tilts import fit_tilts, log_probability
from truepair.data.pairs import Array

LEAST_NEAR = 0.1
LEAST_BESIDE_RANDOM = 2.0
"""Shares of near mismatches that are believed in: of all pairs, and as a multiple of the share of random ones.

Seen on `fashion_precomp`: without any noise 0.03 to 0.06 were found, beside 40 % random mismatches 0.12; of 40 % near
mismatches (the same article type) 0.37."""

LEAST_SKILL = 0.93
LEAST_FOR_LOST_SKILL = 5.5
"""How often a given pair has to score above a random mismatch, and how many times the skill that is lacking near ones
have to be. Seen on `fashion_precomp`: 6.0 and 7.3 with 20 and 40 % near mismatches (skill 0.97, 0.95), 1.8 without any.
On `emoji`, where the models are weak: 4.7 without any (skill 0.95; 0.22 near ones found where there are none), 6.0 with
20 % (skill 0.92; 0.48 found)."""

START = (0.6, 0.2, 0.2)
"""Shares of matched pairs, random and near mismatches that the search starts from."""

STEPS = 400
TOLERANCE = 1e-5
CELLS = 200


@dataclass(frozen=True)
class NearShares:
    """Attributes:
    shares: kind → π of that kind, in [0, 1].
    error: standard error of their sum.
    skill: how often a matched pair scores above a random mismatch, [0, 1], as far as can be told.
    believed: whether there are enough near ones to be believed in.
    """

    shares: dict[str, float]
    error: float
    skill: float
    believed: bool

    @property
    def total(self) -> float:
        return sum(self.shares.values())

    def record(self) -> dict[str, Any]:
        shares = {f"share_{kind}": round(share, 4) for kind, share in self.shares.items()}
        return {**shares, "skill": round(self.skill, 4), "believed": self.believed}


def near_shares(score: Array, rulers: Mapping[str, Array], random_only: float) -> NearShares | None:
    """The shares of random and near mismatches among the given pairs; None without a yardstick of near ones.

    Args:
        score: (M,) of the given pairs.
        rulers: kind → (P,) scores of known mismatches, `random` and `near`.
        random_only: π if all mismatches are random.
    """
    if "near" not in rulers or len(rulers["near"]) < 2:
        return None
    # Equal cells of all scores together: hundreds of counts say as much as a million scores.
    everything = np.concatenate([score, *rulers.values()])
    edges = np.unique(np.quantile(everything, np.linspace(0, 1, CELLS + 1)[1:-1]))
    cell = {name: np.searchsorted(edges, rows) for name, rows in (("given", score), *rulers.items())}
    count = {name: np.bincount(cells, minlength=len(edges) + 1) + 0.0 for name, cells in cell.items()}
    middle = np.concatenate([[edges[0]], (edges[1:] + edges[:-1]) / 2, [edges[-1]]]) if len(edges) else np.zeros(1)
    shares = _maximise(count["given"], count["random"], count["near"], middle)
    total = sum(shares)
    error = float(np.sqrt(total * (1 - total) / len(score) + total**2 / len(rulers["near"]) * 2))
    skill = skill_of(score, rulers["random"], random_only)
    many = shares[1] > max(LEAST_NEAR, LEAST_BESIDE_RANDOM * random_only, LEAST_FOR_LOST_SKILL * (1 - skill))
    return NearShares({"random": shares[0], "near": shares[1]}, error, skill, many and skill > LEAST_SKILL)


def skill_of(score: Array, random: Array, share: float) -> float:
    """How often a matched pair scores above a random mismatch: what the given pairs do, less the half of the `share` of
    random mismatches among them.
    """
    ordered = np.sort(random)
    above = (np.searchsorted(ordered, score, "left") + np.searchsorted(ordered, score, "right")).mean() / 2
    if share >= 1:
        return 0.0
    return float(np.clip((above / len(ordered) - share / 2) / (1 - share), 0.0, 1.0))


def _maximise(
    given: Array, random: Array, near: Array, score: Array, start: tuple[float, float, float] = START
) -> tuple[float, float]:
    """Shares of random and near mismatches, by expectation maximisation over cells.

    The three densities are tilts of each other, log linear in the score, with counts of both mismatched kinds observed:
    each step is a multinomial logistic regression of the kind on the score.
    """
    counts = given + random + near
    mean = float((score * counts).sum() / counts.sum())
    z = (score - mean) / max(float(np.sqrt(((score - mean) ** 2 * counts).sum() / counts.sum())), 1e-12)
    known = np.stack([np.zeros_like(near), random, near])
    shares = np.array(start)
    belief = np.stack([z > 0, z < -0.5, (z >= -0.5) & (z <= 0)]) * 0.8 + 0.2 / 3
    tilts = np.zeros((2, 3))
    for _ in range(STEPS):
        weights = given * belief + known
        tilts = fit_tilts(weights, z, tilts)
        log_odds = log_probability(z, tilts) - np.log(np.maximum(weights.sum(axis=1), 1e-300))[:, None]
        belief = np.exp(log_odds - log_odds.max(axis=0)) * shares[:, None]
        belief /= belief.sum(axis=0)
        before, shares = shares, np.maximum((belief * given).sum(axis=1) / given.sum(), 1e-9)
        if np.abs(shares - before).max() < TOLERANCE:
            break
    return float(shares[1]), float(shares[2])
