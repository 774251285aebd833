"""The soft alignment of DisNCL: each direction learns towards what the other one says, by reverse cross entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_similarity, check_temperature


def reverse_cross_entropy(probability: Tensor, target: Tensor, *, log_floor: float = -4.0) -> Tensor:
    """Loss of every row, (B,) in [0, −A]: H(p, y) = −Σ_j p_j log y_j, log y no lower than A (DisNCL, eq. 6).

    In this order of arguments the loss is bounded, and for one-hot targets its sum over all of them does not depend on
    p: it is −A (K − 1) for K classes, which makes it noise tolerant (DisNCL, theorem 3; Wang et al. 2019).

    Args:
        probability: p, (B, K), rows that sum to 1: what the gradient flows into; any float dtype.
        target: y, (B, K), rows that sum to 1. No gradient flows into it.
        log_floor: A < 0, the least that log y counts.

    Raises:
        InputError: the shapes differ or are not (B, K), a value lies outside [0, 1] (NaN included), or A ≥ 0.
    """
    if probability.ndim != 2 or probability.shape != target.shape or 0 in probability.shape:
        raise InputError(
            f"probability has shape {tuple(probability.shape)}, target {tuple(target.shape)}; expected (B, K) for both"
        )
    if not log_floor < 0:
        raise InputError(f"log_floor is {log_floor}; expected a value below 0")
    for name, values in (("probability", probability), ("target", target)):
        # Rounding may leave a probability a little above 1.
        outside = ~((values >= 0) & (values <= 1 + 1e-5))
        if bool(outside.any()):
            row, column = outside.nonzero()[0].tolist()
            raise InputError(f"{name}[{row}, {column}] is {values[row, column].item()}; expected a value in [0, 1]")
    return -(probability * target.detach().log().clamp(min=log_floor, max=0)).sum(dim=1)


def soft_targets(given: float, other: Tensor) -> Tensor:
    """y of every row, (B, B): β3 e_i + (1 − β3) p_i of the other direction, without a gradient (DisNCL, below eq. 6).

    Args:
        given: β3 in [0, 1], the weight of the given pairs, which stand on the diagonal.
        other: p, (B, B), of the other direction, queries as rows.
    """
    if not 0 <= given <= 1:
        raise InputError(f"the weight of the given pairs is {given}; expected a value in [0, 1]")
    identity = torch.eye(len(other), dtype=other.dtype, device=other.device)
    return given * identity + (1 - given) * other.detach()


def soft_alignment(
    similarity: Tensor, *, temperature: float = 0.05, given: float = 0.5, log_floor: float = -4.0
) -> Tensor:
    """L_soft of every pair, (B,) in [0, −2A]: H(p^i2t, y^i2t) + H(p^t2i, y^t2i) (DisNCL, eq. 5, 6).

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0 of both softmaxes.
        given: β3 in [0, 1]: 1 for the given pairs as targets, 0 for the other direction's probabilities alone.
        log_floor: A < 0: each target below e^A counts as e^A, 0.018 at −4. At −100 that is a target of 0 alone, unless
            the similarities of a row differ by more than 90 τ.

    Raises:
        InputError: the matrix is not square and finite, τ ≤ 0, β3 outside [0, 1] or A ≥ 0.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    to_text = torch.softmax(similarity / temperature, dim=1)
    to_image = torch.softmax(similarity.T / temperature, dim=1)
    return reverse_cross_entropy(to_text, soft_targets(given, to_image), log_floor=log_floor) + reverse_cross_entropy(
        to_image, soft_targets(given, to_text), log_floor=log_floor
    )
