"""Subjective opinions: how much each candidate is believed to be the partner, and how much stays unknown (UGNCL).

Evidence e ≥ 0 for K candidates → Dirichlet parameters α = e + 1 with strength L = Σ α → belief b = e/L in each
candidate and uncertainty u = K/L, Σ b + u = 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_similarity, check_temperature

SATURATION = 39.0
"""Exponents that are d above this become 39 + d/(1 + d), below 40: larger evidence stays larger, with some gradient.

e^40 = 2e17 is more certain than float32 can tell, and the product of two views, summed over a batch, fits in one.
"""


def exponential_evidence(similarity: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Evidence of every cell, (B, B): exp(s/τ), for similarities in [−1, 1] (cosine, or tanh of a raw score).

    From e^(−1/τ), next to nothing, to e^(1/τ): uncertainty can come close to 1, which the printed form
    (`softplus_evidence`) cannot. s/τ saturates between 39 and 40. Half precision becomes float32.

    Raises:
        InputError: the matrix is not square and finite, or τ ≤ 0.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    return _exponential(_at_least_single(similarity) / temperature)


def softplus_evidence(scores: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Evidence of every cell, (B, B): exp(softplus(s)/τ), the form UGNCL prints (eq. 3).

    At least 1 for every score: bidirectional evidence is at least 2 in every cell, so the uncertainty of a pair is at
    most 1/3 in a batch of any size. softplus(s)/τ saturates between 39 and 40. Half precision becomes float32.

    Raises:
        InputError: the matrix is not square and finite, or τ ≤ 0.
    """
    check_similarity(scores)
    check_temperature(temperature)
    return _exponential(softplus(_at_least_single(scores)) / temperature)


def background_evidence(similarity: Tensor, *, temperature: float, background: float) -> Tensor:
    """Evidence in units of the background, (B, B) > 0: η exp(s/τ) / mean over the other pairs' cells of exp(s/τ).

    A cosine is free in its absolute level, and so is evidence made of it. Here a wrong partner gets η on average: a row
    without anything that stands out has u = 1/(1 + η) in one view and 1/(1 + 2η + η²/B) in two, whatever the level.

    Args:
        similarity: (B, B) in [−1, 1]; the cells off the diagonal are the background.
        temperature: τ > 0.
        background: η > 0.
    """
    count = len(similarity)
    scaled = similarity / temperature
    if count == 1:
        return background * torch.ones_like(scaled)
    others = scaled[~torch.eye(count, dtype=torch.bool, device=scaled.device)]
    level = torch.logsumexp(others, dim=0) - math.log(len(others))
    return background * _exponential(scaled - level)


def bidirectional(evidence: Tensor) -> Tensor:
    """Evidence of every pair, (B, B): row i of the result is row i (image i) plus column i (text i) (UGNCL, eq. 4).

    Raises:
        InputError: the evidence is not square, or negative or not finite somewhere.
    """
    check_similarity(evidence)
    _check_evidence(evidence)
    return evidence + evidence.T


def opinions(evidence: Tensor) -> tuple[Tensor, Tensor]:
    """Belief in every candidate, (B, K), and uncertainty, (B,) in (0, 1]: b = e/L, u = K/L (UGNCL, eq. 5 and 6).

    Args:
        evidence: e ≥ 0, (B, K), one row a query (for pairs: `bidirectional`).

    Raises:
        InputError: the evidence is not (B, K), or negative or not finite somewhere.
    """
    _check_evidence(evidence)
    candidates = evidence.shape[1]
    strength = evidence.sum(dim=1) + candidates
    return evidence / strength[:, None], candidates / strength


def fuse_evidence(evidence_a: Tensor, evidence_b: Tensor) -> Tensor:
    """Evidence of two views together, (B, K): e_k = e¹_k + e²_k + e¹_k e²_k / K (Dempster's reduced rule).

    UGNCL (text before eq. 7) fuses opinions, b_k = (b¹_k b²_k + b¹_k u² + b²_k u¹)/(1 − C) and u = u¹u²/(1 − C), with
    the conflict C = Σ_{k≠l} b¹_k b²_l, and goes back to evidence by e_k = b_k K/u (eq. 7). There 1 − C cancels, and
    with b = e/L and u = K/L so do both strengths; the sum above is left. It has no division that total conflict
    (1 − C → 0) could spoil and no tensor over pairs of candidates. 1 − C itself is (u¹u²/K) Σ (e_k + 1), above zero.

    Raises:
        InputError: an input is not (B, K), or negative or not finite somewhere, or the two differ in shape.
    """
    _check_evidence(evidence_a)
    _check_evidence(evidence_b)
    if evidence_a.shape != evidence_b.shape:
        raise InputError(
            f"the evidence of the views has shapes {tuple(evidence_a.shape)} and {tuple(evidence_b.shape)}; "
            "expected the same candidates for the same queries"
        )
    return evidence_a + evidence_b + evidence_a * evidence_b / evidence_a.shape[1]


def fuse_opinions(evidence_a: Tensor, evidence_b: Tensor) -> tuple[Tensor, Tensor]:
    """Belief (B, K) and uncertainty (B,) of two views together: the opinions of `fuse_evidence` (UGNCL, eq. 7).

    Raises:
        InputError: as `fuse_evidence`.
    """
    return opinions(fuse_evidence(evidence_a, evidence_b))


def _exponential(exponent: Tensor) -> Tensor:
    beyond = (exponent - SATURATION).clamp(min=0)
    return torch.where(beyond > 0, SATURATION + beyond / (1 + beyond), exponent).exp()


def _at_least_single(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _check_evidence(evidence: Tensor) -> None:
    if evidence.ndim != 2 or evidence.shape[1] == 0:
        raise InputError(f"evidence has shape {tuple(evidence.shape)}; expected (B, K), K ≥ 1 candidates")
    usable = (evidence >= 0) & (evidence < torch.inf)  # false for NaN
    if not bool(usable.all()):
        row, column = (~usable).nonzero()[0].tolist()
        raise InputError(
            f"evidence[{row}, {column}] is {evidence[row, column].item()}; expected finite values of at least 0"
        )
