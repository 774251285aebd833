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

from truepair.models.attention import Attention, attend, attention_gradient
from truepair.models.layout import Group, unflatten
from truepair.models.projection import ProjectionGradient, blocks, inverse, project_in_place
from truepair.models.self_attention import xavier_linear
from truepair.models.unit import inverse_norm


class Alignment(nn.Module):
    """|difference|² of two vectors → a unit vector of width S; one map for fragments, one for whole items."""

    def __init__(self, width: int, similarity_width: int) -> None:
        super().__init__()
        self.local = xavier_linear(width, similarity_width)
        self.whole = xavier_linear(width, similarity_width)

    def with_attention(
        self,
        images: tuple[Tensor, Tensor],
        texts: tuple[Tensor, Tensor],
        present: Tensor | None,
        groups: list[Group],
        membership: Tensor,
        block_bytes: int,
    ) -> Tensor:
        """Nodes of all pairs, (m (n + T), S): group after group, in each image after image, the global node first.

        Args:
            images: regions (m, R, D) and wholes (m, D); `present` (m, R) is True where there is a region.
            texts: words (T, D), group after group, and wholes (n, D) in the same order.
            membership: (T, n) one-hot.
            block_bytes: size of the buffer of differences.
        """
        nodes: Tensor = _Align.apply(  # type: ignore[no-untyped-call]
            *images, *texts, *self.parameters(), present, groups, membership, block_bytes
        )
        return nodes

    def by_position(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], upper: bool, block_bytes: int
    ) -> Tensor:
        """Nodes (P (1 + L), S) of pairs of images whose regions (count, L, D) are compared position by position.

        All pairs, row after row; with `upper`, of equal first and second, the pairs i ≤ j alone.
        """
        nodes: Tensor = _Compare.apply(*first, *second, *self.parameters(), upper, block_bytes)  # type: ignore[no-untyped-call]
        return nodes


class _Align(torch.autograd.Function):
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
        block_bytes: int,
    ) -> Tensor:
        count, (total, width) = len(regions), words.shape
        attention = attend(regions, words, present, membership)
        norm = attended_norm(attention.weights, regions)
        scaled = attention.weights * inverse_norm(norm)
        nodes = regions.new_empty(count * (total + len(whole_texts)), len(local_bias))
        local_norm, whole_norm = norm.new_empty(count, total, 1), norm.new_empty(count, len(whole_texts), 1)
        of_blocks = blocks(count, total * width * words.element_size(), block_bytes)
        buffer = words.new_empty(of_blocks[0].stop, total, width)
        for rows in of_blocks:
            difference = buffer[: rows.stop - rows.start]
            torch.baddbmm(words, scaled[rows].transpose(1, 2), regions[rows], beta=-1, out=difference)
            projected, found = project_in_place(difference.flatten(0, 1), local_weight, local_bias)
            local_norm[rows] = found.view(-1, total, 1)
            locals_ = projected.view(-1, total, len(local_bias))
            difference = whole_images[rows, None] - whole_texts
            projected, found = project_in_place(difference.flatten(0, 1), whole_weight, whole_bias)
            whole_norm[rows] = found.view(-1, len(whole_texts), 1)
            wholes = projected.view(-1, len(whole_texts), len(local_bias))
            scales = inverse_norm(local_norm[rows]), inverse_norm(whole_norm[rows])
            for place in places(groups, count):
                part = place.of_nodes(nodes, count)[rows]
                torch.mul(place.of_captions(wholes), place.of_captions(scales[1]), out=part[:, :, :1])
                torch.mul(place.of_words(locals_), place.of_words(scales[0]), out=part[:, :, 1:])
        ctx.save_for_backward(
            regions, whole_images, words, whole_texts, local_weight, whole_weight, membership,
            attention.weights, attention.activated, attention.norm, norm, local_norm, whole_norm, nodes,
        )  # fmt: skip
        ctx.groups, ctx.block_bytes = groups, block_bytes
        return nodes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (
            regions, whole_images, words, whole_texts, local_weight, whole_weight, membership,
            weights, activated, affinity_norm, norm, local_norm, whole_norm, nodes,
        ) = ctx.saved_tensors  # fmt: skip
        groups, count, (total, width), captions = ctx.groups, len(regions), words.shape, len(whole_texts)
        local, whole = ProjectionGradient(local_weight), ProjectionGradient(whole_weight)
        d_regions, d_words = torch.empty_like(regions), torch.zeros_like(words)
        d_whole_images, d_whole_texts = torch.empty_like(whole_images), torch.zeros_like(whole_texts)
        scaled = weights * inverse_norm(norm)
        d_weights = torch.empty_like(weights)
        of_blocks = blocks(count, total * width * words.element_size(), ctx.block_bytes)
        buffers = words.new_empty(2, of_blocks[0].stop, total, width)
        for rows in of_blocks:
            size = rows.stop - rows.start
            units, of_units = (nodes.new_empty(size, total, nodes.shape[1]) for _ in range(2))
            whole_units, of_whole_units = (nodes.new_empty(size, captions, nodes.shape[1]) for _ in range(2))
            for into_words, into_wholes, source in (
                (units, whole_units, nodes),
                (of_units, of_whole_units, gradients[0].contiguous()),
            ):
                for place in places(groups, count):
                    part = place.of_nodes(source, count)[rows]
                    place.of_words(into_words).copy_(part[:, :, 1:])
                    place.of_captions(into_wholes).copy_(part[:, :, :1])
            difference = buffers[0, :size]
            torch.baddbmm(words, scaled[rows].transpose(1, 2), regions[rows], beta=-1, out=difference)
            d_difference = local(
                of_units.flatten(0, 1),
                units.flatten(0, 1),
                local_norm[rows].flatten(0, 1),
                difference.flatten(0, 1),
                buffers[1, :size].flatten(0, 1),
            ).view_as(difference)
            for of_image in d_difference:
                d_words.sub_(of_image)
            torch.bmm(regions[rows], d_difference.transpose(1, 2), out=d_weights[rows])
            torch.bmm(scaled[rows], d_difference, out=d_regions[rows])
            difference = whole_images[rows, None] - whole_texts
            d_difference = whole(
                of_whole_units.flatten(0, 1),
                whole_units.flatten(0, 1),
                whole_norm[rows].flatten(0, 1),
                difference.flatten(0, 1),
                torch.empty_like(difference).flatten(0, 1),
            ).view_as(difference)
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


class _Compare(torch.autograd.Function):
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
        upper: bool,
        block_bytes: int,
    ) -> Tensor:
        length = first.shape[1]
        spans = pair_spans(len(first), len(second), upper)
        pairs = spans[-1][1].stop
        nodes = first.new_empty(pairs, 1 + length, len(local_bias))
        norms = first.new_empty(pairs, 1 + length, 1)
        for row, span, start in spans:
            for part, single, others, weight, bias in (
                (slice(1, None), first[row], second, local_weight, local_bias),
                (slice(0, 1), whole_first[row, None], whole_second[:, None], whole_weight, whole_bias),
            ):
                for some in blocks(len(second) - start, others[0].numel() * first.element_size(), block_bytes):
                    difference = single - others[start + some.start : start + some.stop]
                    projected, norm = project_in_place(difference.flatten(0, 1), weight, bias)
                    at = slice(span.start + some.start, span.start + some.stop)
                    norms[at, part] = norm.view(*difference.shape[:2], 1)
                    scale = inverse_norm(norm).view(*difference.shape[:2], 1)
                    torch.mul(projected.view(*difference.shape[:2], -1), scale, out=nodes[at, part])
        ctx.save_for_backward(first, whole_first, second, whole_second, local_weight, whole_weight, norms, nodes)
        ctx.spans, ctx.block_bytes = spans, block_bytes
        return nodes.flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        first, whole_first, second, whole_second, local_weight, whole_weight, norms, nodes = ctx.saved_tensors
        local, whole = ProjectionGradient(local_weight), ProjectionGradient(whole_weight)
        gradient = gradients[0].reshape(nodes.shape)
        found = [torch.zeros_like(side) for side in (first, whole_first, second, whole_second)]
        for row, span, start in ctx.spans:
            for part, single, others, into_single, into_others, project in (
                (slice(1, None), first[row], second, found[0][row], found[2], local),
                (
                    slice(0, 1),
                    whole_first[row, None],
                    whole_second[:, None],
                    found[1][row, None],
                    found[3][:, None],
                    whole,
                ),
            ):
                for some in blocks(len(second) - start, others[0].numel() * first.element_size(), ctx.block_bytes):
                    columns = slice(start + some.start, start + some.stop)
                    at = slice(span.start + some.start, span.start + some.stop)
                    difference = single - others[columns]
                    d_difference = project(
                        gradient[at, part].flatten(0, 1),
                        nodes[at, part].flatten(0, 1),
                        norms[at, part].flatten(0, 1),
                        difference.flatten(0, 1),
                        torch.empty_like(difference).flatten(0, 1),
                    ).view_as(difference)
                    into_single.add_(d_difference.sum(dim=0))
                    into_others[columns].sub_(d_difference)
        return (*found, local.weight, local.bias, whole.weight, whole.bias, None, None)


def pair_spans(first: int, second: int, upper: bool) -> list[tuple[int, slice, int]]:
    """For every row: its number, where its pairs stand among all, and the column of the first of them."""
    spans, at = [], 0
    for row in range(first):
        start = row if upper else 0
        spans.append((row, slice(at, at + second - start), start))
        at += second - start
    return spans


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
