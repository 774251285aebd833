"""Candidate pairs beside the entries of a bank, a block of rows at a time, with what both sides' similarities share.

Letters: n candidates, m bank entries, x the image and y the text of a candidate, X and Y the bank's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.audit.scoring.bank import TIE, Bank, check_sides
from truepair.errors import InputError

BLOCK_CELLS = 2**20


@dataclass(frozen=True)
class OwnEntries:
    """The bank entries that a candidate is made of, or that are as good as those: it is not compared with them.

    Attributes:
        row, column: (h,) places in (n, m), one for each such entry.
        others: (n,) float32, how many entries are left, 0 … m.
    """

    row: Tensor
    column: Tensor
    others: Tensor

    def fill(self, products: Tensor, value: float) -> Tensor:
        """`products` (n, m) with that value, in place, where they are a candidate's own."""
        products[self.row, self.column] = value
        return products

    def with_alike(self, to_images: Tensor, to_texts: Tensor, same: float) -> OwnEntries:
        """These and the entries that have the candidate's image or its text again: of a cosine of at least `same`
        with the bank's images, or with its texts, (n, m).
        """
        closest = torch.maximum(to_images.amax(dim=1), to_texts.amax(dim=1))
        asked = (closest >= same).nonzero()[:, 0]
        if not len(asked):
            return self
        alike = torch.maximum(to_images[asked], to_texts[asked]) >= same
        known = torch.isin(self.row, asked)
        alike[torch.searchsorted(asked, self.row[known]), self.column[known]] = False
        row, column = alike.nonzero(as_tuple=True)
        row = asked[row]
        others = self.others - row.bincount(minlength=len(self.others)).float()
        return OwnEntries(torch.cat([self.row, row]), torch.cat([self.column, column]), others)


@dataclass(frozen=True)
class Block:
    """Some candidates: x (b, D), y (b, D), their similarity (b,) in [−1, 1], and their own entries of the bank."""

    images: Tensor
    texts: Tensor
    similarity: Tensor
    own: OwnEntries


def blocks(images: Tensor, texts: Tensor, bank: Bank, image_rows: Tensor, text_rows: Tensor) -> Iterator[Block]:
    """The candidates in blocks of some million cells; arguments and errors are those of `indicators.score`."""
    check_sides(images, texts, image_rows, what="candidates")
    if text_rows.shape != image_rows.shape or text_rows.dtype != torch.int64:
        raise InputError(
            f"the text rows are {tuple(text_rows.shape)} {text_rows.dtype}; expected ({len(images)},) int64"
        )
    if images.shape[1] != bank.images.shape[1] or images.device != bank.images.device:
        raise InputError(
            f"the candidates have width {images.shape[1]} on {images.device}, the bank {bank.images.shape[1]} on "
            f"{bank.images.device}; expected the same space and device"
        )
    height = max(16, BLOCK_CELLS // len(bank))
    for first in range(0, len(images), height):
        part = slice(first, first + height)
        x, y = images[part].float(), texts[part].float()
        own = own_entries(bank.rows, image_rows[part], text_rows[part])
        yield Block(x, y, (x * y).sum(dim=1).clamp(-1, 1), own)


def own_entries(bank_rows: Tensor, image_rows: Tensor, text_rows: Tensor) -> OwnEntries:
    """Entries of a bank of these rows, ascending, whose row is that of the candidate's image or of its text."""
    at = torch.arange(len(image_rows), device=image_rows.device)
    places = [torch.searchsorted(bank_rows, rows).clamp(max=len(bank_rows) - 1) for rows in (image_rows, text_rows)]
    found = [bank_rows[place] == rows for place, rows in zip(places, (image_rows, text_rows), strict=True)]
    found[1] &= text_rows != image_rows
    row = torch.cat([at[known] for known in found])
    column = torch.cat([place[known] for place, known in zip(places, found, strict=True)])
    return OwnEntries(row, column, (len(bank_rows) - row.bincount(minlength=len(at))).float())


def products(vectors: Tensor, entries: Tensor) -> Tensor:
    """Similarities (b, m) of unit rows (b, D) to (m, D)."""
    # A single row would take another routine, which rounds differently.
    return vectors @ entries.T if len(vectors) > 1 else (vectors.expand(2, -1) @ entries.T)[:1]


def nearest(similarity: Tensor, own: OwnEntries, count: int) -> Tensor:
    """(b, m) bool: the `count` other entries of largest similarity, all that tie for the last place included: nobody's
    order in the bank decides. The similarity (b, m) is minus infinity at a candidate's own entries.
    """
    last = similarity.topk(min(count, similarity.shape[1]), dim=1).values[:, -1:]
    return own.fill(similarity >= last - TIE, False)
