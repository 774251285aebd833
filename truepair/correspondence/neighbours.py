"""Exact nearest neighbours by cosine among unit rows, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.errors import InputError

MEMORY_BYTES = 96 * 2**20
SAMPLED_COLUMNS = 4096
LIST_LENGTH = 3  # in units of the neighbours asked for; about 1.8 pass at 200 of 43,000
FEW = 32  # lists pay where no more than one in so many rows is a neighbour


@torch.no_grad()
def nearest_neighbours(bank: Tensor, count: int, *, memory_bytes: int = MEMORY_BYTES) -> tuple[Tensor, Tensor]:
    """Similarity (N, c) and index (N, c) int64 of the most similar other rows of each row, the best first.

    c is `count`, or N − 1 where that is less. Equals stand in the order of their index, and of those that tie for the
    last place the lowest are taken. Exact but for the rounding of the products.

    Args:
        bank: (N, d) of unit length, any float dtype, the dtype of the result.
        count: at least 0.
        memory_bytes: for blocks of products; one row is always taken. On a CPU, with N of 16,384 and more, lists of
            candidates come on top, twice the size of the result.

    Raises:
        InputError: the bank is not (N, d) of finite floats, or `count` is negative.
    """
    size = _check_bank(bank)
    if count < 0:
        raise InputError(f"count of neighbours is {count}; expected at least 0")
    count = min(count, size - 1)
    best = _Best(bank.new_empty(size, count), torch.empty(size, count, dtype=torch.int64, device=bank.device))
    if not count:
        return best.similarity, best.index
    if bank.device.type == "cpu" and size >= max(4 * SAMPLED_COLUMNS, FEW * count):
        left = _search_by_halves(bank, best, memory_bytes)
    else:
        left = torch.arange(size, device=bank.device)
    for ids, block in _blocks(bank, left, bank, memory_bytes // 2):
        block[torch.arange(len(ids), device=bank.device), ids] = -torch.inf
        best.similarity[ids], best.index[ids] = _sorted_top(block, count)
    return best.similarity, best.index


@torch.no_grad()
def nearest_among(bank: Tensor, candidate_ids: Tensor, *, memory_bytes: int = MEMORY_BYTES) -> tuple[Tensor, Tensor]:
    """Similarity (N,) and id (N,) int64 of the candidate most similar to each row, the lower id of equals.

    No row is its own nearest candidate unless it is the only one.

    Args:
        bank: (N, d) of unit length, any float dtype.
        candidate_ids: int64, distinct row numbers, at least one.
        memory_bytes: working memory beside the result; one row is always taken.

    Raises:
        InputError: the bank is not (N, d) of finite floats, or an id is repeated or not the number of a row.
    """
    size = _check_bank(bank)
    candidates = _check_candidates(candidate_ids, size).to(bank.device)
    similarity, index = bank.new_empty(size), torch.empty(size, dtype=torch.int64, device=bank.device)
    everybody = torch.arange(size, device=bank.device)
    for ids, block in _blocks(bank, everybody, bank[candidates], memory_bytes):
        if len(candidates) > 1:
            block.masked_fill_(ids[:, None] == candidates, -torch.inf)
        best = block.argmax(dim=1)
        similarity[ids], index[ids] = block.gather(1, best[:, None])[:, 0], candidates[best]
    return similarity, index


def _blocks(bank: Tensor, ids: Tensor, others: Tensor, memory_bytes: int) -> Iterator[tuple[Tensor, Tensor]]:
    """(some of the ids, the products of their rows with all `others`); the next block overwrites the products."""
    height = min(len(ids), max(1, memory_bytes // (len(others) * bank.element_size())))
    buffer = bank.new_empty(height, len(others))
    for some in ids.split(height) if len(ids) else ():  # type: ignore[no-untyped-call]
        yield some, torch.mm(bank[some], others.T, out=buffer[: len(some)])


@dataclass(frozen=True)
class _Best:
    """The result as it is filled: similarity and index, (N, count)."""

    similarity: Tensor
    index: Tensor


def _search_by_halves(bank: Tensor, best: _Best, memory_bytes: int) -> Tensor:
    """Fill the best of nearly all rows, computing every product once for both its rows; the ids of those left over.

    A row keeps what passes its threshold, which is a quantile of its products with some rows, so low that nearly
    always more than `count` pass. Counting what passes is one pass over the products; selecting 200 of 43,000 takes
    several times as long. When the block of a row is reached, it has met all rows.
    """
    size, count = best.index.shape
    threshold = _thresholds(bank, count, memory_bytes)
    lists = _Lists(bank, LIST_LENGTH * count)
    height = min(size, max(1, memory_bytes // (size * (bank.element_size() + 2))))
    buffer = bank.new_empty(height * size)
    for first in range(0, size, height):
        last = min(first + height, size)
        block = buffer[: (last - first) * (size - first)].view(last - first, size - first)
        torch.mm(bank[first:last], bank[first:].T, out=block).fill_diagonal_(-torch.inf)
        later = block[:, last - first :]
        row, column = _true_places(later >= threshold[last:])
        column, order = column.sort(stable=True)
        row = row[order]
        lists.add(last + column, first + row, later[row, column])
        row, column = _true_places(block >= threshold[first:last, None])
        lists.add(first + row, first + column, block[row, column])
        best.similarity[first:last], best.index[first:last] = lists.largest(slice(first, last), count)
    return ((lists.filled < count) | (lists.filled > lists.length)).nonzero()[:, 0]


def _thresholds(bank: Tensor, count: int, memory_bytes: int) -> Tensor:
    size = len(bank)
    sample = bank[:: size // SAMPLED_COLUMNS]
    expected = count * len(sample) / size
    rank = min(len(sample), int(expected + 3 * expected**0.5) + 2)
    everybody = torch.arange(size)
    parts = [block.topk(rank, dim=1).values[:, -1] for _, block in _blocks(bank, everybody, sample, memory_bytes)]
    return torch.cat(parts)


class _Lists:
    """For every row a list of other rows in ascending order, with their similarities, as far as there is room."""

    def __init__(self, bank: Tensor, length: int) -> None:
        self.length = length
        self.filled = torch.zeros(len(bank), dtype=torch.int64)
        self._similarity = bank.new_full((len(bank), length), -torch.inf)
        self._index = torch.zeros(len(bank), length, dtype=torch.int32)

    def add(self, owner: Tensor, other: Tensor, similarity: Tensor) -> None:
        """Append to the lists of the owners, which come in ascending order."""
        new = owner.bincount(minlength=len(self.filled))
        slot = torch.arange(len(owner)) + (self.filled - (new.cumsum(dim=0) - new))[owner]
        fits = slot < self.length
        if not bool(fits.all()):
            owner, slot, other, similarity = owner[fits], slot[fits], other[fits], similarity[fits]
        self._similarity[owner, slot] = similarity
        self._index[owner, slot] = other.int()
        self.filled += new

    def largest(self, rows: slice, count: int) -> tuple[Tensor, Tensor]:
        """Similarity and index of the `count` best of some rows; of equals the lower index first."""
        width = max(count, min(self.length, int(self.filled[rows].amax())))
        similarity, order = self._similarity[rows, :width].sort(dim=1, descending=True, stable=True)
        return similarity[:, :count], self._index[rows, :width].gather(1, order[:, :count]).long()


def _true_places(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns, in this order; four times as fast as `nonzero`."""
    import numpy as np

    at = torch.from_numpy(np.flatnonzero(mask.numpy()))
    return at // mask.shape[1], at % mask.shape[1]


def _sorted_top(block: Tensor, count: int) -> tuple[Tensor, Tensor]:
    columns = block.shape[1]
    values, places = block.topk(min(count + 1, columns), dim=1)
    if count < columns:
        tied = (values[:, count - 1] == values[:, count]).nonzero()[:, 0]
        values, places = values[:, :count].contiguous(), places[:, :count].contiguous()
        if len(tied):
            # topk takes any of those that tie for the last place.
            values[tied], places[tied] = _by_full_sort(block[tied], count)
    places, order = places.sort(dim=1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, places.gather(1, order)


def _by_full_sort(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    values, places = rows.sort(dim=1, descending=True, stable=True)
    return values[:, :count], places[:, :count]


def _check_bank(bank: Tensor) -> int:
    if bank.ndim != 2 or not bank.numel() or not bank.is_floating_point():
        raise InputError(
            f"bank is {bank.dtype} of shape {tuple(bank.shape)}; expected floats of shape (N, d), N, d ≥ 1"
        )
    if not bool(torch.isfinite(bank.detach()).all()):
        row = int((~torch.isfinite(bank.detach())).any(dim=1).nonzero()[0])
        raise InputError(
            f"bank, row {row}, is not finite; look for NaN in the features or a learning rate that is too high"
        )
    return len(bank)


def _check_candidates(candidate_ids: Tensor, size: int) -> Tensor:
    if candidate_ids.dtype != torch.int64 or candidate_ids.ndim != 1 or not len(candidate_ids):
        raise InputError(
            f"candidates are {candidate_ids.dtype} of shape {tuple(candidate_ids.shape)}; expected int64 of shape "
            "(G,) with at least one"
        )
    ids = candidate_ids.sort().values
    if int(ids[0]) < 0 or int(ids[-1]) >= size or bool((ids[1:] == ids[:-1]).any()):
        raise InputError(
            f"candidates run from {int(ids[0])} to {int(ids[-1])}; expected distinct numbers 0 … {size - 1}"
        )
    return ids
