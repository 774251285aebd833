"""Distillation of a batch: every item learns whom its teacher finds alike among all candidates."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_similarity, check_temperature

NEVER = -1e30
"""A logit whose probability is 0 in every float dtype, and whose gradient is no NaN where a row holds no other."""


def batch_distillation(
    similarity: Tensor,
    target: Tensor,
    *,
    temperature: float = 0.05,
    target_temperature: float | None = None,
    left_out: Tensor | None = None,
) -> Tensor:
    """Loss of every pair, (B,) ≥ 0: KL(t_i‖p_i) + KL(tᵀ_i‖pᵀ_i), t the teacher's softmax over the batch, p the own one.

    Both directions: image i over all texts, text i over all images. With softmaxes of the same temperature the gradient
    of S_ij is (p_ij − t_ij)/τ, at most 1/τ in size, whatever the target is.

    Args:
        similarity: S, (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        target: the teacher's, (B, B), in the same order. No gradient flows into it.
        temperature: τ > 0 of p.
        target_temperature: τ > 0 of t; None for that of p. Lower values sharpen the target.
        left_out: (B,) bool, pairs whose own cell is no candidate: neither t nor p has it, so that their loss does not
            depend on it. All cells of other pairs stay. None for no pair.

    Raises:
        InputError: a matrix is not square and finite, their sizes differ, a temperature is not above 0, or `left_out`
            is not (B,) bool.
    """
    count = check_similarity(similarity)
    if check_similarity(target) != count:
        raise InputError(f"target has shape {tuple(target.shape)}; expected that of similarity, ({count}, {count})")
    target_temperature = temperature if target_temperature is None else target_temperature
    check_temperature(temperature)
    check_temperature(target_temperature)
    if left_out is None:
        left_out = torch.zeros(count, dtype=torch.bool)
    if left_out.shape != (count,) or left_out.dtype != torch.bool:
        raise InputError(f"left_out is {left_out.dtype} of shape {tuple(left_out.shape)}; expected bool of ({count},)")
    no_candidate = torch.diag_embed(left_out).to(similarity.device)
    own, teacher = similarity / temperature, target.detach().to(similarity) / target_temperature
    return _divergence(own, teacher, no_candidate) + _divergence(own.T, teacher.T, no_candidate)


def _divergence(own: Tensor, teacher: Tensor, no_candidate: Tensor) -> Tensor:
    """KL of every row, (B,), over its candidates; 0 for a row that has none."""
    log_p, log_t = (torch.log_softmax(logits.masked_fill(no_candidate, NEVER), dim=1) for logits in (own, teacher))
    return (log_t.exp() * (log_t - log_p)).masked_fill(no_candidate, 0.0).sum(dim=1)
