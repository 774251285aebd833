"""From a set of region or word vectors to one vector: mean, max, and generalized pooling (GPO).

Shape letters: B items, L elements of the longest item, D width.
Source of GPO: "Learning the Best Pooling Strategy for Visual Semantic Embedding" (VSE∞, CVPR 2021),
section 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

RANK_WIDTH, RANK_TEMPERATURE = 32, 0.1  # of GPO's encodings and hidden state, and of its softmax, as in VSE∞


def element_mask(lengths: Tensor, longest: int, device: torch.device) -> Tensor:
    """True where an element exists: (B, L) bool."""
    return (torch.arange(longest)[None, :] < lengths[:, None]).to(device)


class MeanPooling(nn.Module):
    """Mean over the elements that exist: (B, L, D) → (B, D)."""

    def forward(self, elements: Tensor, lengths: Tensor) -> Tensor:
        mask = element_mask(lengths, elements.shape[1], elements.device)
        total = elements.masked_fill(~mask[..., None], 0.0).sum(dim=1)
        return total / lengths.to(elements)[:, None]


class MaxPooling(nn.Module):
    """Largest value of each coordinate over the elements that exist: (B, L, D) → (B, D)."""

    def forward(self, elements: Tensor, lengths: Tensor) -> Tensor:
        mask = element_mask(lengths, elements.shape[1], elements.device)
        return elements.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)


class GeneralizedPooling(nn.Module):
    """Weighted sum of each coordinate's sorted values; the weights are learned from the ranks: (B, L, D) → (B, D).

    A rank k of a set of n elements has weight θ_k(n): a Bi-GRU reads sinusoidal encodings of the ranks 1…n and a
    linear layer scores them; softmax over the n ranks with temperature 0.1. Mean (all equal) and max (first rank only)
    are special cases. The weights depend on n alone, so they are computed once per distinct length, not per item.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rank_reader = nn.GRU(RANK_WIDTH, RANK_WIDTH, batch_first=True, bidirectional=True)
        self.score = nn.Linear(RANK_WIDTH, 1, bias=False)

    def forward(self, elements: Tensor, lengths: Tensor) -> Tensor:
        longest = elements.shape[1]
        weights = self.rank_weights(lengths, longest).to(elements.dtype)
        values = elements.transpose(1, 2)
        if bool((lengths < longest).any()):
            present = element_mask(lengths, longest, elements.device)
            # Absent elements count as smallest, so they come first; zero, so that their weight 0 gives 0.
            values = values.masked_fill(~present[:, None, :], torch.finfo(elements.dtype).min)
            ordered = sort_ascending(values).masked_fill(~present.flip(1)[:, None, :], 0.0)
        else:
            ordered = sort_ascending(values)
        return torch.matmul(ordered, weights.flip(1)[..., None]).squeeze(-1)

    def rank_weights(self, lengths: Tensor, longest: int) -> Tensor:
        """Weights (B, L) of the ranks, zero beyond each item's length; every row sums to 1."""
        distinct, which = torch.unique(lengths, return_inverse=True)
        parameter = self.score.weight
        encodings = rank_encodings(longest, RANK_WIDTH).to(parameter)
        packed = nn.utils.rnn.pack_padded_sequence(
            encodings.expand(len(distinct), -1, -1), distinct, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.rank_reader(packed)[0], batch_first=True, total_length=longest
        )
        scores = self.score((states[..., :RANK_WIDTH] + states[..., RANK_WIDTH:]) / 2).squeeze(-1)
        mask = element_mask(distinct, longest, scores.device)
        weights = torch.softmax(scores.masked_fill(~mask, -torch.inf) / RANK_TEMPERATURE, dim=1)
        return weights[which.to(weights.device)]


def sort_ascending(values: Tensor) -> Tensor:
    """The last axis sorted from smallest to largest, differentiable: (B, D, L) → (B, D, L)."""
    if values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64):
        ordered: Tensor = _SortOnCpu.apply(values)  # type: ignore[no-untyped-call]
        return ordered
    return values.sort(dim=-1).values


class _SortOnCpu(torch.autograd.Function):
    """NumPy's vectorised argsort is three times as fast as torch's sort on a CPU; the numbers are the same."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        contiguous = values.contiguous()
        order = torch.from_numpy(np.argsort(contiguous.numpy(), axis=-1))
        ctx.save_for_backward(order)
        return contiguous.gather(-1, order)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (order,) = ctx.saved_tensors
        return torch.empty_like(gradients[0]).scatter_(-1, order, gradients[0])


def rank_encodings(count: int, width: int) -> Tensor:
    """Sinusoidal encodings of ranks 0 … count−1: (count, width) float32."""
    rank = torch.arange(count, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10000.0) / width))
    encoding = torch.zeros(count, width)
    encoding[:, 0::2] = torch.sin(rank * frequency)
    encoding[:, 1::2] = torch.cos(rank * frequency)
    return encoding


POOLINGS: dict[str, type[nn.Module]] = {"gpo": GeneralizedPooling, "mean": MeanPooling, "max": MaxPooling}
