"""Similarity graph reasoning (SGR): the nodes of an image–caption pair exchange messages; node 0 gives the score.

One step [SGRAF, eq. 7, 8]: s'_i = ReLU( W_r Σ_j softmax_j( (W_q s_i + b_q) · (W_k s_j + b_k) ) s_j + b_r ).

It is computed as attention with query A s_i + a, key s_j and value W_r s_j + b_r, where A = W_kᵀ W_q and a = W_kᵀ b_q:
one wide product over all nodes of all pairs, then small products within each pair. What the key's bias adds is the same
for every j and cancels in the softmax. After the last step only node 0 is read, so only node 0 is computed.

Shape letters: P pairs, N nodes a pair (the global one first), S similarity width.
Source: "Similarity Reasoning and Filtration for Image-Text Matching" (SGRAF, AAAI 2021), section 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from truepair.engines.region_word.layout import PairGroup, PairNodes, views
from truepair.engines.region_word.self_attention import xavier_linear


class ReasoningStep(nn.Module):
    """The parameters of one step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = xavier_linear(width, width)
        self.key = xavier_linear(width, width)
        self.graph = xavier_linear(width, width)

    def fused(self) -> tuple[Tensor, Tensor]:
        """Weight (2 S, S) and bias (2 S,) of query and value.

        The true gradient of the key's bias is zero; it takes part with that, so that an optimizer sees every parameter.
        """
        matrix = self.key.weight.T @ self.query.weight
        bias = self.key.weight.T @ self.query.bias + 0.0 * self.key.bias
        return torch.cat([matrix, self.graph.weight]), torch.cat([bias, self.graph.bias])


class GraphReasoning(nn.Module):
    """All steps, from the nodes of pairs to the vector of each pair's node 0."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.moving = True  # as in `AttentionFiltration`; there are no running statistics here
        self.steps = nn.ModuleList([ReasoningStep(width) for _ in range(steps)])

    def vectors(
        self, chunks: Iterable[PairNodes], columns: int, *, mirrored: bool = False, keep: bool = True
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, columns (pairs,) and vectors (pairs, S) of chunk after chunk.

        Args:
            keep: keep queries and values for the backward pass; else they are computed again there, at a third of the
                memory.
        """
        fused = [step.fused() for step in self.steps if isinstance(step, ReasoningStep)]
        for chunk in chunks:
            vectors = self(chunk.nodes, chunk.groups, fused, keep=keep)
            yield from chunk.placed(vectors, vectors if mirrored else None)

    def kept(self, nodes: int) -> int:
        """Numbers that `keep` keeps, for so many nodes."""
        return 2 * nodes * sum(step.graph.in_features for step in self.steps[:-1] if isinstance(step, ReasoningStep))

    def forward(
        self, nodes: Tensor, groups: list[PairGroup], fused: list[tuple[Tensor, Tensor]], *, keep: bool
    ) -> Tensor:
        """(all nodes, S) → (all pairs, S)."""
        for weight, bias in fused[:-1]:
            nodes = _Step.apply(nodes, weight, bias, groups, keep)  # type: ignore[no-untyped-call]
        weight, bias = fused[-1]
        width = nodes.shape[1]
        gathered = _GatherForNodeZero.apply(nodes, weight[:width], bias[:width], groups)  # type: ignore[no-untyped-call]
        return torch.relu(linear(gathered, weight[width:], bias[width:]))


def attend(queries: Tensor, nodes: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the nodes of a pair of queries (pairs, q, S) times nodes (pairs, N, S), (pairs, q, N).

    Where N is as short as a caption, this is several times as fast as torch's softmax on a CPU.
    """
    edges = torch.bmm(queries, nodes.transpose(1, 2))
    if mask is not None:
        edges.masked_fill_(~mask.unsqueeze(1), -torch.inf)
    powers = edges.sub_(edges.amax(dim=-1, keepdim=True)).exp_()
    return powers.div_(powers.sum(dim=-1, keepdim=True))


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, nodes: Tensor, weight: Tensor, bias: Tensor, groups: list[PairGroup], keep: bool) -> Tensor:
        width = nodes.shape[1]
        wide = torch.addmm(bias, nodes, weight.T)
        result = torch.empty_like(nodes)
        shares = []
        for (of_nodes, group), (of_wide, _), (of_result, _) in zip(
            views(nodes, groups), views(wide, groups), views(result, groups), strict=True
        ):
            share = attend(of_wide[..., :width], of_nodes, group.mask)
            torch.bmm(share, of_wide[..., width:], out=of_result)
            shares.append(share)
        result.relu_()
        ctx.save_for_backward(nodes, weight, bias, result, *([wide] if keep else []), *shares)
        ctx.groups, ctx.keep = groups, keep
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        nodes, weight, bias, result, *rest = ctx.saved_tensors
        width, groups = nodes.shape[1], ctx.groups
        wide, shares = (rest[0], rest[1:]) if ctx.keep else (torch.addmm(bias, nodes, weight.T), rest)
        gradient = torch.ops.aten.threshold_backward(gradients[0], result, 0)
        d_wide, d_nodes = torch.empty_like(wide), torch.empty_like(nodes)
        parts = (views(rows, groups) for rows in (nodes, wide, gradient, d_wide, d_nodes))
        for share, (of_nodes, _), (of_wide, _), (d_result, _), (into_wide, _), (into_nodes, _) in zip(
            shares, *parts, strict=True
        ):
            torch.bmm(share.transpose(1, 2), d_result, out=into_wide[..., width:])
            d_share = torch.bmm(d_result, of_wide[..., width:].transpose(1, 2))
            d_edges = d_share.sub_((share * d_share).sum(dim=2, keepdim=True)).mul_(share)
            torch.bmm(d_edges, of_nodes, out=into_wide[..., :width])
            torch.bmm(d_edges.transpose(1, 2), of_wide[..., :width], out=into_nodes)
        d_nodes.addmm_(d_wide, weight)
        return d_nodes, torch.mm(d_wide.T, nodes), d_wide.sum(dim=0), None, None


class _GatherForNodeZero(torch.autograd.Function):
    """Σ_j softmax_j( (A s_0 + a) · s_j ) s_j of every pair: (all nodes, S) → (all pairs, S)."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, weight: Tensor, bias: Tensor, groups: list[PairGroup]) -> Tensor:
        asking = torch.cat([part[:, 0] for part, _ in views(nodes, groups)])
        queries = torch.addmm(bias, asking, weight.T)
        pairs = [group.pairs for group in groups]
        result = torch.empty_like(queries)
        shares = []
        for query, into, (part, group) in zip(
            torch.split(queries, pairs), torch.split(result, pairs), views(nodes, groups), strict=True
        ):
            share = attend(query.unsqueeze(1), part, group.mask)
            torch.bmm(share, part, out=into.unsqueeze(1))
            shares.append(share)
        ctx.save_for_backward(nodes, weight, asking, queries, *shares)
        ctx.groups = groups
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        nodes, weight, asking, queries, *shares = ctx.saved_tensors
        groups = ctx.groups
        pairs = [group.pairs for group in groups]
        d_nodes, d_queries = torch.empty_like(nodes), torch.empty_like(queries)
        for share, query, d_result, d_query, (part, _), (into, _) in zip(
            shares,
            torch.split(queries, pairs),
            torch.split(gradients[0], pairs),
            torch.split(d_queries, pairs),
            views(nodes, groups),
            views(d_nodes, groups),
            strict=True,
        ):
            d_share = torch.bmm(d_result.unsqueeze(1), part.transpose(1, 2))
            d_edges = d_share.sub_((share * d_share).sum(dim=2, keepdim=True)).mul_(share)
            torch.bmm(d_edges, part, out=d_query.unsqueeze(1))
            # A node is read as a key and as a value: both gradients in one product.
            left = torch.cat([share, d_edges], dim=1).transpose(1, 2)
            torch.bmm(left, torch.stack([d_result, query], dim=1), out=into)
        d_asking = torch.mm(d_queries, weight)
        for of_zero, (into, _) in zip(torch.split(d_asking, pairs), views(d_nodes, groups), strict=True):
            into[:, 0].add_(of_zero)
        return d_nodes, torch.mm(d_queries.T, asking), d_queries.sum(dim=0), None
