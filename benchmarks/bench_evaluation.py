"""`evaluate` from encodings to figures, against the field's way: the whole matrix, then a loop over queries.

python -m benchmarks.bench_evaluation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from benchmarks.bench_ranks import SIZES, looped_ranks
from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.evaluation import evaluate, recall_from_ranks

WIDTH = 256
BLOCK_ROWS = 256


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    images: int
    texts: int
    way: str
    seconds: float
    times_faster: float
    extra_peak_mb: float
    rsum: float


class GivenEncodings:
    """A global model whose encodings are there already."""

    def __init__(self, images: Tensor, texts: Tensor) -> None:
        self.images, self.texts = images, texts

    def similarity_blocks(self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray) -> Blocks:
        return Blocks(self.images[torch.from_numpy(image_rows)], self.texts[torch.from_numpy(text_rows)])


@dataclass(frozen=True)
class Blocks:
    """Rows of a similarity matrix, computed anew at every pass."""

    images: Tensor
    texts: Tensor

    def __iter__(self) -> Iterator[Tensor]:
        return (rows @ self.texts.T for rows in torch.split(self.images, BLOCK_ROWS))


def problem(images: int, texts: int) -> tuple[GivenEncodings, Pairs]:
    """Random unit vectors; a text lies near its image."""
    draw = torch.Generator().manual_seed(0)
    image_of_text = np.repeat(np.arange(images), texts // images)
    vectors = torch.randn(images, WIDTH, generator=draw)
    captions = vectors[image_of_text] + 4 * torch.randn(texts, WIDTH, generator=draw)
    pairs = Pairs(
        Images(np.zeros((images, 1), np.float32), tuple(map(str, range(images)))),
        Texts(("",) * texts, tuple(map(str, range(texts)))),
        image_of_text,
        np.arange(texts),
    )
    normalize = torch.nn.functional.normalize
    return GivenEncodings(normalize(vectors, dim=1), normalize(captions, dim=1)), pairs


def by_loop(model: GivenEncodings, pairs: Pairs) -> dict[str, float]:
    """The whole matrix, then one argsort per query."""
    return recall_from_ranks(*looped_ranks((model.images @ model.texts.T).numpy(), pairs.image_of_text))


WAYS: dict[str, Callable[[GivenEncodings, Pairs], dict[str, float]]] = {"loop": by_loop, "evaluate": evaluate}


def ready(way: str, images: int, texts: int) -> Callable[[], dict[str, float]]:
    """What memory is measured on; libraries are loaded before it counts."""
    WAYS[way](*problem(20, 100))
    return partial(WAYS[way], *problem(images, texts))


def compare(images: int, texts: int) -> list[Row]:
    """One row per way at one size."""
    rows: list[Row] = []
    for way in WAYS:
        call = ready(way, images, texts)
        figures = call()
        seconds = median_seconds(call, 1 if way == "loop" else 5, warm_up=False)
        memory = extra_peak_bytes(partial(ready, way, images, texts)) / 1e6
        faster = rows[0].seconds / seconds if rows else 1.0
        rows.append(Row(images, texts, way, seconds, faster, memory, figures["rsum"]))
    return rows


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'images × texts':>16}  {'way':<9} {'seconds':>8} {'ratio':>7} {'extra peak':>11}  {'rSum':>6}"]
    for row in rows:
        size = f"{row.images:,} × {row.texts:,}"
        lines.append(
            f"{size:>16}  {row.way:<9} {row.seconds:>8.3f} {row.times_faster:>6.1f}x {row.extra_peak_mb:>8.1f} MB  "
            f"{row.rsum:>6.1f}"
        )
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the ways do not agree on their numbers.
    """
    rows = [row for size in SIZES for row in compare(*size)]
    for images, _ in SIZES:
        figures = {row.rsum for row in rows if row.images == images}
        if max(figures) - min(figures) > 0.01:
            raise SystemExit("the two ways disagree on rSum")
    return rows


if __name__ == "__main__":
    print(table(measure()))
