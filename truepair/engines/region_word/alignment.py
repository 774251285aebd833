"""From regions and words to the similarity vectors of an image and a caption: one global, one a word (SGRAF, eq. 1–6).

With c_t the mean of the regions as word t attends to them, L2-normalised, the local vector of word t is
unit(W_l |c_t − w_t|² + b_l), and the global one unit(W_g |v̄ − w̄|² + b_g).

On a CPU this stage is memory traffic: c − w is as wide as the embedding, for every image and word. It is computed for
an image or two at a time, in one buffer, and again in the backward pass; its norm comes from the Gram matrix of the
regions, without a pass over it.

Shape letters: m images, R regions, n captions, T words of all captions, D width, S similarity width, P pairs of images.
Source: "Similarity Reasoning and Filtration for Image-Text Matching" (SGRAF, AAAI 2021), section 3.2, and its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from truepair.engines.region_word.attention import Attention, attend, attention_gradient
from truepair.engines.region_word.layout import Group, unflatten
from truepair.engines.region_word.self_attention import xavier_linear
from truepair.engines.unit import ProjectionGradient, blocks, inverse, inverse_norm, project_in_place


class Alignment(nn.Module):
    """|difference|² of two vectors → a unit vector of width S; one map for fragments, one for whole items."""

    def __init__(self, width: int, similarity_width: int) -> None:
        super().__init__()
        self.local = xavier_linear(width, similarity_width)
        self.whole = xavier_linear(width, similarity_width)


class WithAttention(torch.autograd.Function):
    """Nodes of all pairs, (m (n + T), S): group after group, in each image after image, the global node first.

    Args:
        regions, whole_images: (m, R, D) and (m, D); `present` (m, R) is True where there is a region.
        words, whole_texts: (T, D), group after group, and (n, D) in the same order.
        membership: (T, n) one-hot.
        buffers: (2, images at a time, T, D), what stands there is overwritten, in the backward pass as well.
    """

    @staticmethod
    def forward(
        ctx: Any,
        regions: Tensor,
        whole_images: Tensor,
        words: Tensor,
        whole_texts: Tensor,
        local_weight: Tensor,
        local_bias: Tensor,
        whole_weight: Tensor,
        whole_bias: Tensor,
        present: Tensor | None,
        groups: list[Group],
        membership: Tensor,
        buffers: Tensor,
    ) -> Tensor:
        count, total = len(regions), len(words)
        attention = attend(regions, words, present, membership)
        norm = attended_norm(attention.weights, regions)
        scaled = attention.weights * inverse_norm(norm)
        nodes = regions.new_empty(count * (total + len(whole_texts)), len(local_bias))
        local_norm, whole_norm = norm.new_empty(count, total, 1), norm.new_empty(count, len(whole_texts), 1)
        for rows in blocks(count, 1, buffers.shape[1]):
            difference = buffers[0, : rows.stop - rows.start]
            torch.baddbmm(words, scaled[rows].transpose(1, 2), regions[rows], beta=-1, out=difference)
            locals_, local_norm[rows] = project_in_place(difference, local_weight, local_bias)
            difference = whole_images[rows, None] - whole_texts
            wholes, whole_norm[rows] = project_in_place(difference, whole_weight, whole_bias)
            scales = inverse_norm(local_norm[rows]), inverse_norm(whole_norm[rows])
            for place in places(groups, count):
                part = place.of_nodes(nodes, count)[rows]
                torch.mul(place.of_captions(wholes), place.of_captions(scales[1]), out=part[:, :, :1])
                torch.mul(place.of_words(locals_), place.of_words(scales[0]), out=part[:, :, 1:])
        ctx.save_for_backward(
            regions, whole_images, words, whole_texts, local_weight, whole_weight, membership,
            attention.weights, attention.activated, attention.norm, norm, local_norm, whole_norm, nodes,
        )  # fmt: skip
        ctx.groups, ctx.buffers = groups, buffers
        return nodes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (
            regions, whole_images, words, whole_texts, local_weight, whole_weight, membership,
            weights, activated, affinity_norm, norm, local_norm, whole_norm, nodes,
        ) = ctx.saved_tensors  # fmt: skip
        groups, buffers, gradient = ctx.groups, ctx.buffers, gradients[0].contiguous()
        count, (total, width), captions = len(regions), words.shape, len(whole_texts)
        local, whole = ProjectionGradient(local_weight), ProjectionGradient(whole_weight)
        d_regions, d_words = torch.empty_like(regions), torch.zeros_like(words)
        d_whole_images, d_whole_texts = torch.empty_like(whole_images), torch.zeros_like(whole_texts)
        scaled = weights * inverse_norm(norm)
        d_weights = torch.empty_like(weights)
        for_words = nodes.new_empty(2, buffers.shape[1], total, nodes.shape[1])
        for_wholes = nodes.new_empty(2, buffers.shape[1], captions, nodes.shape[1])
        for rows in blocks(count, 1, buffers.shape[1]):
            size = rows.stop - rows.start
            (units, of_units), (whole_units, of_whole_units) = for_words[:, :size], for_wholes[:, :size]
            sources = (units, whole_units, nodes), (of_units, of_whole_units, gradient)
            for into_words, into_wholes, source in sources:
                for place in places(groups, count):
                    part = place.of_nodes(source, count)[rows]
                    place.of_words(into_words).copy_(part[:, :, 1:])
                    place.of_captions(into_wholes).copy_(part[:, :, :1])
            difference = buffers[0, :size]
            torch.baddbmm(words, scaled[rows].transpose(1, 2), regions[rows], beta=-1, out=difference)
            d_difference = local(of_units, units, local_norm[rows], difference, buffers[1, :size])
            for of_image in d_difference:
                d_words.sub_(of_image)
            torch.bmm(regions[rows], d_difference.transpose(1, 2), out=d_weights[rows])
            torch.bmm(scaled[rows], d_difference, out=d_regions[rows])
            difference = whole_images[rows, None] - whole_texts
            d_difference = whole(of_whole_units, whole_units, whole_norm[rows], difference)
            torch.sum(d_difference, dim=1, out=d_whole_images[rows])
            d_whole_texts.sub_(d_difference.sum(dim=0))
        # The norm of c = Σ_r α_r v_r: with ĉ = c / ‖c‖ the part of the gradient along ĉ is taken off, all of it from
        # d · v_r and the Gram matrix.
        along = (scaled * d_weights).sum(dim=1, keepdim=True).mul_(inverse(norm))
        gram = torch.bmm(regions, regions.transpose(1, 2))
        d_weights.mul_(inverse_norm(norm)).sub_(torch.bmm(gram, scaled).mul_(along))
        d_regions.baddbmm_(torch.bmm(weights * along, scaled.transpose(1, 2)), regions, alpha=-1)
        d_affinity = attention_gradient(d_weights, Attention(weights, activated, affinity_norm), membership)
        d_regions.view(-1, width).addmm_(d_affinity, words)
        d_words.addmm_(d_affinity.T, regions.flatten(0, 1))
        return (
            d_regions, d_whole_images, d_words, d_whole_texts,
            local.weight, local.bias, whole.weight, whole.bias, None, None, None, None,
        )  # fmt: skip


class ByPosition(torch.autograd.Function):
    """Nodes of pairs of images whose regions (count, L, D) are compared position by position.

    For each of some chunks of the rows of `first`: (P (1 + L), S), the pairs of row after row with all of `second`;
    with `upper`, of equal first and second, the pairs i ≤ j alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        whole_first: Tensor,
        second: Tensor,
        whole_second: Tensor,
        local_weight: Tensor,
        local_bias: Tensor,
        whole_weight: Tensor,
        whole_bias: Tensor,
        chunks: list[slice],
        upper: bool,
        block_bytes: int,
    ) -> tuple[Tensor, ...]:
        length, row_bytes = first.shape[1], first[0].numel() * first.element_size()
        runs = [pair_runs(rows, len(second), upper, row_bytes, block_bytes) for rows in chunks]
        every_nodes, every_norm = [], []
        for of_chunk in runs:
            pairs = of_chunk[-1].pairs.stop
            nodes = first.new_empty(pairs, 1 + length, len(local_bias))
            norms = first.new_empty(pairs, 1 + length, 1)
            for run in of_chunk:
                for part, single, others, weight, bias in (
                    (slice(1, None), first[run.row], second, local_weight, local_bias),
                    (slice(0, 1), whole_first[run.row, None], whole_second[:, None], whole_weight, whole_bias),
                ):
                    difference = single - others[run.columns]
                    projected, norm = project_in_place(difference, weight, bias)
                    norms[run.pairs, part] = norm
                    torch.mul(projected, inverse_norm(norm), out=nodes[run.pairs, part])
            every_nodes.append(nodes.flatten(0, 1))
            every_norm.append(norms)
        ctx.save_for_backward(
            first, whole_first, second, whole_second, local_weight, whole_weight, *every_norm, *every_nodes
        )
        ctx.runs = runs
        return tuple(every_nodes)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        first, whole_first, second, whole_second, local_weight, whole_weight, *rest = ctx.saved_tensors
        local, whole = ProjectionGradient(local_weight), ProjectionGradient(whole_weight)
        found = [torch.zeros_like(side) for side in (first, whole_first, second, whole_second)]
        every_norm, every_nodes = rest[: len(ctx.runs)], rest[len(ctx.runs) :]
        for of_chunk, norms, nodes, gradient in zip(ctx.runs, every_norm, every_nodes, gradients, strict=True):
            nodes, gradient = (values.reshape(*norms.shape[:2], -1) for values in (nodes, gradient))
            for run in of_chunk:
                row, columns = run.row, run.columns
                for part, single, others, into_single, into_others, project in (
                    (slice(1, None), first[row], second, found[0][row], found[2], local),
                    (slice(0, 1), whole_first[row], whole_second, found[1][row], found[3], whole),
                ):
                    difference = single - others[columns]
                    at = run.pairs, part
                    d_difference = project(gradient[at], nodes[at], norms[at], difference)
                    into_single.add_(d_difference.sum(dim=0))
                    into_others[columns].sub_(d_difference)
        return (*found, local.weight, local.bias, whole.weight, whole.bias, None, None, None)


@dataclass(frozen=True)
class Run:
    """Some pairs of one row: which columns, and where they stand among the pairs of their chunk."""

    row: int
    columns: slice
    pairs: slice


def pair_runs(rows: slice, columns: int, upper: bool, row_bytes: int, block_bytes: int) -> list[Run]:
    """The pairs of some rows, row after row, in runs of so many columns as fit a buffer."""
    runs, at = [], 0
    for row in range(rows.start, rows.stop):
        start = row if upper else 0
        for some in blocks(columns - start, row_bytes, block_bytes):
            width = some.stop - some.start
            runs.append(Run(row, slice(start + some.start, start + some.stop), slice(at, at + width)))
            at += width
    return runs


def attended_norm(weights: Tensor, regions: Tensor) -> Tensor:
    """‖Σ_r α_r v_r‖ of every word, from the Gram matrix of the regions: (m, R, T), (m, R, D) → (m, 1, T)."""
    gram = torch.bmm(regions, regions.transpose(1, 2))
    squares = torch.bmm(gram, weights).mul_(weights).sum(dim=1, keepdim=True)
    return squares.clamp_(min=0).sqrt_()


@dataclass(frozen=True)
class Place:
    """Where one group stands: its words among (m, T, …), its captions among (m, n, …), its rows among the nodes."""

    group: Group
    words: slice
    captions: slice
    nodes: slice

    def of_words(self, values: Tensor) -> Tensor:
        """(m, T, …) → (m, count, length, …), without a copy."""
        return unflatten(values[:, self.words], 1, (self.group.count, self.group.length))

    def of_captions(self, values: Tensor) -> Tensor:
        """(m, n, …) → (m, count, 1, …), without a copy."""
        return values[:, self.captions].unsqueeze(2)

    def of_nodes(self, nodes: Tensor, images: int) -> Tensor:
        """(m (n + T), S) → (m, count, 1 + length, S), without a copy."""
        return nodes[self.nodes].view(images, self.group.count, 1 + self.group.length, -1)


def places(groups: list[Group], images: int) -> list[Place]:
    """The place of every group."""
    found = []
    word = caption = row = 0
    for group in groups:
        words, rows = group.count * group.length, images * group.count * (1 + group.length)
        found.append(
            Place(group, slice(word, word + words), slice(caption, caption + group.count), slice(row, row + rows))
        )
        word, caption, row = word + words, caption + group.count, row + rows
    return found
