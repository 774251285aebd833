"""Progress over the cells of a similarity matrix, for models that take minutes: one bar a pass, gone when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from tqdm import tqdm

from truepair.data.pairs import IntArray, Pairs
from truepair.evaluation.evaluate import ScoresPairs


def counted(parts: Iterable[Tensor], cells: int, *, progress: bool | None, title: str) -> Iterator[Tensor]:
    """The parts as they are, while a bar counts their cells.

    Args:
        parts: tensors with `cells` entries altogether.
        progress: show the bar; None shows it on a terminal only.
        title: what stands before the bar.
    """
    disable = None if progress is None else not progress
    bar: tqdm[Any] = tqdm(total=cells, desc=title, unit=" cells", unit_scale=True, leave=False, disable=disable)
    with bar:
        for part in parts:
            bar.update(part.numel())
            yield part


@dataclass(frozen=True)
class Watched:
    """A model whose similarity matrix shows its progress; for `evaluate` it is the model itself.

    Attributes:
        model: the model.
        progress: as `counted`.
    """

    model: ScoresPairs
    progress: bool | None = None

    def similarity_blocks(self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray) -> Iterable[Tensor]:
        blocks = self.model.similarity_blocks(pairs, image_rows, text_rows)
        return _WatchedBlocks(blocks, len(image_rows) * len(text_rows), self.progress)


@dataclass(frozen=True)
class _WatchedBlocks:
    blocks: Iterable[Tensor]
    cells: int
    progress: bool | None

    def __iter__(self) -> Iterator[Tensor]:
        return counted(self.blocks, self.cells, progress=self.progress, title="similarity")

    @property
    def costly(self) -> bool:
        return bool(getattr(self.blocks, "costly", False))
