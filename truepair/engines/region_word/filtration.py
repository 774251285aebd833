"""Similarity attention filtration (SAF): nodes that do not help the match get little weight in the sum of the nodes.

β_i ∝ σ( BN(w · s_i + b) ), Σ_i β_i = 1; the pair's vector is unit( Σ_i β_i s_i ) [SGRAF, eq. 9, 10].

The batch norm has one channel. In training it sees one column of the similarity matrix at a time, as in the authors'
loop: mean and variance of column j are over all rows and all nodes of the column, and the running statistics move once
a column, in the order of the columns.

Shape letters: P pairs, N nodes a pair, S similarity width, n columns.
Source: "Similarity Reasoning and Filtration for Image-Text Matching" (SGRAF, AAAI 2021), section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from truepair.engines.region_word.layout import PairGroup, PairNodes, views
from truepair.engines.region_word.self_attention import xavier_linear
from truepair.engines.unit import SMALL, unit


class AttentionFiltration(nn.Module):
    """From the nodes of pairs to one vector each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = xavier_linear(width, 1)
        self.norm = nn.BatchNorm1d(1)
        self.moving = True  # whether training moves the running statistics

    def vectors(
        self, chunks: Iterable[PairNodes], columns: int, *, mirrored: bool = False, keep: bool = True
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, columns (pairs,) and vectors (pairs, S) of chunk after chunk; in training after all were seen.

        Args:
            columns: n; in training every column must be there as a whole.
            mirrored: the chunks hold the pairs i ≤ j of a symmetric comparison, to be given as (i, j) and (j, i).
            keep: as for `GraphReasoning.vectors`; without effect.
        """
        if not self.norm.training:
            mean, variance = self.norm.running_mean, self.norm.running_var
            assert mean is not None
            assert variance is not None
            for chunk in chunks:
                logits, nodes = self.logits(chunk)
                (vectors,) = self.filtered(chunk, nodes, [self.normalized(logits, mean, variance)])
                yield from chunk.placed(vectors, vectors if mirrored else None)
            return
        every = [(chunk, *self.logits(chunk)) for chunk in chunks]
        mean, variance = self.column_statistics([(chunk, logits) for chunk, logits, _ in every], columns, mirrored)
        for chunk, logits, nodes in every:
            sizes = chunk.sizes()
            sides = [chunk.columns, chunk.rows] if mirrored else [chunk.columns]
            owners = [side.repeat_interleave(sizes) for side in sides]
            normalized = [self.normalized(logits, mean[owner], variance[owner]) for owner in owners]
            vectors, *mirror = self.filtered(chunk, nodes, normalized)
            yield from chunk.placed(vectors, mirror[0] if mirror else None)

    def kept(self, nodes: int) -> int:
        """Numbers that `keep` keeps: nothing here is worth computing again."""
        return 0

    def logits(self, chunk: PairNodes) -> tuple[Tensor, Tensor]:
        """w · s + b of every node (all nodes,), before the batch norm, and the nodes as `filtered` takes them."""
        logits, nodes = _Logits.apply(chunk.nodes, self.attention.weight, self.attention.bias)  # type: ignore[no-untyped-call]
        return logits, nodes

    def column_statistics(
        self, every: list[tuple[PairNodes, Tensor]], columns: int, mirrored: bool
    ) -> tuple[Tensor, Tensor]:
        """Mean and biased variance of the logits of each column, (n,) each; moves the running statistics."""
        values, owners = [], []
        for chunk, logits in every:
            sizes, exists = chunk.sizes(), chunk.existing()
            present = torch.ones_like(logits, dtype=torch.bool) if exists is None else exists
            for side, other in ((chunk.columns, chunk.rows), (chunk.rows, chunk.columns))[: 1 + mirrored]:
                # The mirror image of a pair (i, i) is itself, and counts once.
                taken = present if side is chunk.columns else present & (side != other).repeat_interleave(sizes)
                values.append(logits[taken])
                owners.append(side.repeat_interleave(sizes)[taken])
        value, owner = torch.cat(values), torch.cat(owners)

        def per_column(summed: Tensor) -> Tensor:
            return summed.new_zeros(columns).index_add(0, owner, summed)

        count = per_column(torch.ones_like(value))
        mean = per_column(value) / count
        squares = per_column((value - mean[owner]) ** 2)
        if self.moving:
            self.move_running_statistics(mean.detach(), (squares / (count - 1)).detach())
        return mean, squares / count

    def move_running_statistics(self, mean: Tensor, variance: Tensor) -> None:
        """One step of the moving average a column, all at once: r (1 − μ)ⁿ + Σ_j μ (1 − μ)^(n−1−j) x_j."""
        norm, columns = self.norm, len(mean)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        momentum = 0.1 if norm.momentum is None else norm.momentum
        ages = torch.arange(columns - 1, -1, -1, device=mean.device, dtype=mean.dtype)
        shares = momentum * (1 - momentum) ** ages
        norm.running_mean.mul_((1 - momentum) ** columns).add_((shares * mean).sum())
        norm.running_var.mul_((1 - momentum) ** columns).add_((shares * variance).sum())
        norm.num_batches_tracked += columns

    def normalized(self, logits: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        """The batch norm itself, with statistics that broadcast against the logits."""
        return (logits - mean) * (torch.rsqrt(variance + self.norm.eps) * self.norm.weight) + self.norm.bias

    def filtered(self, chunk: PairNodes, nodes: Tensor, logits: list[Tensor]) -> list[Tensor]:
        """The vectors (pairs, S) that each of some normalised logits (all nodes,) gives."""
        sizes, exists = chunk.sizes(), chunk.existing()
        pair = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
        shares = []
        for normalized in logits:
            gates = torch.sigmoid(normalized)
            if exists is not None:
                gates = gates.masked_fill(~exists, 0.0)
            total = gates.new_zeros(len(sizes)).index_add(0, pair, gates)
            shares.append(gates / (total + SMALL)[pair])
        sums = _WeightedSums.apply(nodes, torch.stack(shares, dim=1), chunk.groups)  # type: ignore[no-untyped-call]
        return [unit(of_side) for of_side in sums.unbind(dim=1)]


class _Logits(torch.autograd.Function):
    """w · s + b, and the nodes themselves: so that the gradient of `_WeightedSums` is added to in place."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(nodes, weight)
        return torch.mv(nodes, weight[0]).add_(bias), nodes.view_as(nodes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        nodes, weight = ctx.saved_tensors
        of_logits, of_nodes = gradients
        # `_WeightedSums` alone reads the nodes behind this, and made this tensor for nobody else.
        of_nodes.addr_(of_logits, weight[0])
        return of_nodes, torch.mv(nodes.T, of_logits).unsqueeze(0), of_logits.sum().view(1)


class _WeightedSums(torch.autograd.Function):
    """Σ_i β_ki s_i of every pair: (all nodes, S), (all nodes, k) → (all pairs, k, S)."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, shares: Tensor, groups: list[PairGroup]) -> Tensor:
        ctx.save_for_backward(nodes, shares)
        ctx.groups = groups
        parts = zip(views(nodes, groups), views(shares, groups), strict=True)
        return torch.cat([torch.bmm(share.transpose(1, 2), part) for (part, _), (share, _) in parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        nodes, shares = ctx.saved_tensors
        groups = ctx.groups
        d_nodes, d_shares = torch.empty_like(nodes), torch.empty_like(shares)
        parts = (views(rows, groups) for rows in (nodes, shares, d_nodes, d_shares))
        for d_sums, (part, _), (share, _), (into_nodes, _), (into_shares, _) in zip(
            torch.split(gradients[0], [group.pairs for group in groups]), *parts, strict=True
        ):
            torch.bmm(share, d_sums, out=into_nodes)
            torch.bmm(part, d_sums.transpose(1, 2), out=into_shares)
        return d_nodes, d_shares, None
