"""The trusted robust loss of UGNCL: hinges whose margin shrinks where the label of a pair cannot be trusted."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_labels, check_similarity


def soft_margin(labels: Tensor, margin: float, curve: float = 10.0) -> Tensor:
    """Margin of every pair, (B,): (m^y − 1)/(m − 1) · α, from 0 at y = 0 to α at y = 1 (UGNCL, below eq. 2; NCR).

    UGNCL prints m^(ŷ − 1)/(m − 1) and no α: a misprint of the form that all others use.

    Args:
        labels: y, (B,) in [0, 1]. No gradient flows into them.
        margin: α ≥ 0.
        curve: m > 1; the larger, the later the margin rises.

    Raises:
        InputError: a label lies outside [0, 1], α < 0 or m ≤ 1.
    """
    check_labels(labels, len(labels))
    if not margin >= 0 or not curve > 1:
        raise InputError(f"margin is {margin}, curve {curve}; expected a margin of at least 0 and a curve above 1")
    return margin / (curve - 1) * torch.expm1(labels.detach() * math.log(curve))


def trusted_margin(
    soft_label: Tensor,
    uncertainty: Tensor,
    *,
    margin: float = 0.2,
    curve: float = 10.0,
    sharpness: float = 10.0,
    threshold: float = 0.5,
) -> Tensor:
    """Margin of every hard pair, (B,) in [0, α]: γ̃ = γ̂/(1 + odds^(−Δ)), γ̂ the soft margin of ỹ (UGNCL, eq. 17).

    odds = (1 − u)/u for a hard-clean pair (ỹ > ε), u/(1 − u) for a hard-noisy one: the margin is kept where a pair
    looks clean and is certain, or looks noisy and is uncertain, and goes to 0 elsewhere. Eq. 17 prints 1/(u − 1) for
    the first; this is what the sentence below it says. Neither u = 0 nor u = 1 divides by zero.

    Args:
        soft_label: ỹ, (B,) in [0, 1]. No gradient flows into it.
        uncertainty: u, (B,) in [0, 1]. No gradient flows into it.
        margin, curve: α ≥ 0 and m > 1 of `soft_margin`.
        sharpness: Δ > 0.
        threshold: ε, above which a pair is hard-clean (eq. 11).

    Raises:
        InputError: a label or an uncertainty lies outside [0, 1], the two differ in length, or Δ ≤ 0.
    """
    soft = soft_margin(soft_label, margin, curve)
    try:
        check_labels(uncertainty, len(soft))
    except InputError as error:
        raise InputError(f"uncertainty, checked like labels: {error}") from None
    if not sharpness > 0:
        raise InputError(f"sharpness is {sharpness}; expected a value above 0")
    uncertain = uncertainty.detach().to(soft)
    # odds^(−Δ) overflows; in the log domain 1/(1 + odds^(−Δ)) is a sigmoid.
    log_odds = torch.log1p(-uncertain) - uncertain.log()
    clean = soft_label.detach() > threshold
    return soft * torch.sigmoid(sharpness * torch.where(clean, log_odds, -log_odds))


def trusted_ranking(similarity: Tensor, *, margin: Tensor, negatives: Tensor) -> Tensor:
    """Loss of every pair, (B,): mean hinge over its own number of hardest negatives, both directions (UGNCL, eq. 16).

    (1/λ_i) Σ over the λ_i hardest of [γ̃_i − S_ii + S_ij]₊, plus the same with S_ji: `hinge_ranking` with a λ for each
    pair. It is 1 for determined-clean pairs, λ for hard ones and 0 for determined-noisy ones, which then have no term
    at all (with a margin of 0 they would still be trained). Such a pair stays a negative of the others.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        margin: γ̃, (B,), of each pair in both directions. No gradient flows into it.
        negatives: λ ≥ 0, (B,), an integer dtype; more than the B − 1 there are means all. B = 1 costs 0.

    Raises:
        InputError: the matrix is not square and finite, or margin or negatives are not as above.
    """
    count = check_similarity(similarity)
    _check_margins(margin, negatives, count)
    counted = negatives.to(similarity.device).clamp(max=count - 1)
    most = int(counted.max())
    if most == 0:
        return similarity.diagonal() * 0.0
    itself = torch.eye(count, dtype=torch.bool, device=similarity.device)
    others = similarity.masked_fill(itself, -torch.inf)
    threshold = (margin.detach().to(similarity) - similarity.diagonal())[:, None]
    beyond = torch.arange(most, device=similarity.device) >= counted[:, None]
    total = similarity.diagonal() * 0.0
    for queries in (others, others.T):
        hinges = (threshold + queries.topk(most, dim=1).values).clamp(min=0)
        total = total + hinges.masked_fill(beyond, 0.0).sum(dim=1) / counted.clamp(min=1)
    return total


def hardness(step: int, total_steps: int, batch: int, least: int = 5) -> int:
    """λ of a step, counted from 0: falls linearly from B − 1 to θ by the end of the warm-up, θ from then on.

    What the released code does, which takes δ per step. At least 1, and at most B − 1 where there are that many.

    Args:
        step: steps taken before this one, all epochs together.
        total_steps: steps of the warm-up; 0 for none.
        batch: B.
        least: θ ≥ 1.

    Raises:
        InputError: a number is negative, or B or θ is below 1.
    """
    if step < 0 or total_steps < 0 or batch < 1 or least < 1:
        raise InputError(
            f"step is {step}, total_steps {total_steps}, batch {batch}, least {least}; expected steps of at least 0, "
            "and batch and least of at least 1"
        )
    most = max(batch - 1, 1)
    fewest = min(least, most)
    if step >= total_steps:
        return fewest
    return most - (most - fewest) * step // total_steps


def printed_hardness(epoch: int, batch: int, delta: float = 0.25, least: int = 5) -> int:
    """λ of an epoch, as printed: max(⌊B − δ · epoch⌋, θ) (UGNCL, below eq. 16).

    With the paper's δ it hardly moves: 40 epochs lower λ by 10. See `hardness`.
    """
    return max(math.floor(batch - delta * epoch), least)


def _check_margins(margin: Tensor, negatives: Tensor, count: int) -> None:
    for name, values in (("margin", margin), ("negatives", negatives)):
        if values.shape != (count,):
            raise InputError(f"{name} has shape {tuple(values.shape)}; expected ({count},), one per pair")
    if not bool(torch.isfinite(margin).all()):
        row = int((~torch.isfinite(margin)).nonzero()[0])
        raise InputError(f"margin[{row}] is {margin[row].item()}; expected a finite value")
    if negatives.is_floating_point() or negatives.dtype == torch.bool:
        raise InputError(f"negatives is {negatives.dtype}; expected an integer dtype, a number of negatives per pair")
    if bool((negatives < 0).any()):
        row = int((negatives < 0).nonzero()[0])
        raise InputError(f"negatives[{row}] is {negatives[row].item()}; expected at least 0")
