"""How the words of many captions are laid out for work: by exact length (CPU) or padded (accelerator).

A CPU wants no wasted work: captions of the same length form a group, and nothing is padded. An accelerator wants few
launches: all captions form one group, padded and masked. Everything behind a layout is the same code, and gives the
same numbers.

Shape letters: n captions, L words of the longest, T rows of words (padding included, where there is any).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.engines.pooling import element_mask


@dataclass(frozen=True)
class Group:
    """`count` captions of `length` words; `mask` (count, length) is True where a word exists, None if everywhere."""

    count: int
    length: int
    mask: Tensor | None


@dataclass(frozen=True)
class Layout:
    """`order` (n,) lists the captions group after group; `places` (T,) the rows of their words in (n · L)."""

    groups: list[Group]
    order: Tensor
    places: Tensor

    def membership(self, like: Tensor) -> Tensor:
        """(T, n) one-hot: 1 where a word belongs to a caption. A product with it sums over the words of a caption."""
        lengths = torch.tensor([group.length for group in self.groups])
        counts = torch.tensor([group.count for group in self.groups])
        owner = torch.arange(len(self.order)).repeat_interleave(lengths.repeat_interleave(counts)).to(like.device)
        return like.new_zeros(len(owner), len(self.order)).scatter_(1, owner[:, None], 1.0)


def by_length(lengths: Tensor, longest: int, device: torch.device) -> Layout:
    """One group a distinct length, no padding: what a CPU wants."""
    ordered, order = lengths.sort(stable=True)
    distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
    pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))
    groups = [Group(count, length, None) for length, count in pairs]
    places = [
        (rows[:, None] * longest + torch.arange(length)).flatten()
        for rows, (length, _) in zip(torch.split(order, [count for _, count in pairs]), pairs, strict=True)
    ]
    return Layout(groups, order, torch.cat(places))


def padded(lengths: Tensor, longest: int, device: torch.device) -> Layout:
    """One group of all, padded to the longest: what an accelerator wants."""
    ragged = bool((lengths < longest).any())
    group = Group(len(lengths), longest, element_mask(lengths, longest, device) if ragged else None)
    return Layout([group], torch.arange(len(lengths)), torch.arange(len(lengths) * longest))


def layout_for(lengths: Tensor, longest: int, device: torch.device) -> Layout:
    """The layout that suits the device."""
    return (by_length if device.type == "cpu" else padded)(lengths, longest, device)


@dataclass(frozen=True)
class PairGroup:
    """`pairs` pairs of items with `size` nodes each; `mask` (pairs, size) is True where a node exists."""

    pairs: int
    size: int
    mask: Tensor | None

    @property
    def rows(self) -> int:
        return self.pairs * self.size


def pair_groups(groups: list[Group], images: int) -> list[PairGroup]:
    """The nodes of some images with all captions of some groups: node 0 is that of the wholes, then one a word."""
    found = []
    for group in groups:
        mask = group.mask
        if mask is not None:
            mask = torch.cat([mask.new_ones(group.count, 1), mask], dim=1).repeat(images, 1)
        found.append(PairGroup(images * group.count, 1 + group.length, mask))
    return found


@dataclass(frozen=True)
class PairNodes:
    """The similarity vectors of some pairs: `nodes` (all nodes, S), laid out as `groups` say.

    Pair p belongs to cell (`rows[p]`, `columns[p]`) of the similarity matrix.
    """

    nodes: Tensor
    groups: list[PairGroup]
    rows: Tensor
    columns: Tensor

    def placed(self, vectors: Tensor, mirror: Tensor | None) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, columns and vectors of the pairs, then of their mirror images, where there are; (i, i) has none."""
        yield self.rows, self.columns, vectors
        if mirror is not None:
            apart = (self.rows != self.columns).nonzero().squeeze(1)
            yield self.columns[apart], self.rows[apart], mirror[apart]

    def sizes(self) -> Tensor:
        """Number of nodes of every pair, absent ones included: (pairs,) int64."""
        sizes = torch.tensor([group.size for group in self.groups], device=self.rows.device)
        pairs = torch.tensor([group.pairs for group in self.groups], device=self.rows.device)
        return sizes.repeat_interleave(pairs)

    def existing(self) -> Tensor | None:
        """(all nodes,) True where a node exists; None if everywhere."""
        if all(group.mask is None for group in self.groups):
            return None
        ones = self.rows.new_ones(1, dtype=torch.bool)
        masks = [ones.expand(group.rows) if group.mask is None else group.mask.flatten() for group in self.groups]
        return torch.cat(masks)


def views(rows: Tensor, groups: list[PairGroup]) -> Iterator[tuple[Tensor, PairGroup]]:
    """Each group's part of `rows` (all nodes, …) as (pairs, size, …), without a copy."""
    parts = torch.split(rows, [group.rows for group in groups])
    return ((unflatten(part, 0, (group.pairs, group.size)), group) for part, group in zip(parts, groups, strict=True))


def unflatten(values: Tensor, dim: int, sizes: tuple[int, int]) -> Tensor:
    """The axis `dim` as two, without a copy."""
    return values.view(*values.shape[:dim], *sizes, *values.shape[dim + 1 :])
