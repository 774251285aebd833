"""Counted ranks against the field's loop over queries: seconds, ratio, extra memory, and whether they agree.

python -m benchmarks.bench_ranks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.evaluation import ranks

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ranker = Callable[[Floats, Ints], tuple[Ints, Ints]]

SIZES = ((1_000, 5_000), (5_000, 25_000))
"""(images, texts) of the field's two test sets: Flickr30K or one fold of COCO, and the whole of COCO."""
SECONDS_NOT_WORTH_REPEATING = 2.0
REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    images: int
    texts: int
    way: str
    seconds: float
    times_faster: float
    extra_peak_mb: float
    same_ranks: bool


def counted_ranks(similarity: Floats, image_of_text: Ints) -> tuple[Ints, Ints]:
    """The ranks as truepair counts them."""
    image_ranks, text_ranks = ranks(torch.from_numpy(similarity), torch.from_numpy(image_of_text))
    return image_ranks.numpy(), text_ranks.numpy()


def counted_ranks_on_one_thread(similarity: Floats, image_of_text: Ints) -> tuple[Ints, Ints]:
    """The same on one core, as the loop runs; on a machine that is busy with other work, the figure to trust."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return counted_ranks(similarity, image_of_text)
    finally:
        torch.set_num_threads(threads)


def looped_ranks(similarity: Floats, image_of_text: Ints) -> tuple[Ints, Ints]:
    """The ranks as the released evaluation codes find them (VSE++, SCAN, SGRAF and what follows).

    One query at a time: sort all its similarities, look up the place of each right item. Ties fall as the sort leaves
    them.
    """
    images, texts = similarity.shape
    own_texts = [np.flatnonzero(image_of_text == image) for image in range(images)]
    image_ranks = np.zeros(images, dtype=np.int64)
    for image in range(images):
        order = np.argsort(similarity[image])[::-1]
        image_ranks[image] = min(np.where(order == text)[0][0] for text in own_texts[image])
    text_ranks = np.zeros(texts, dtype=np.int64)
    by_text = similarity.T
    for text in range(texts):
        order = np.argsort(by_text[text])[::-1]
        text_ranks[text] = np.where(order == image_of_text[text])[0][0]
    return image_ranks, text_ranks


WAYS: dict[str, Ranker] = {
    "loop": looped_ranks,
    "counted, 1 thread": counted_ranks_on_one_thread,
    "counted": counted_ranks,
}


def tie_free_problem(images: int, texts: int) -> tuple[Floats, Ints]:
    """Random similarities in which no wrong item ties with a right one; equally many texts per image."""
    draw = np.random.default_rng(0)
    image_of_text = np.repeat(np.arange(images), texts // images)
    similarity = draw.standard_normal((images, texts), dtype=np.float32)
    similarity[image_of_text, np.arange(texts)] += 3
    # The last bit of the mantissa is 0 in wrong similarities and 1 in right ones.
    bits = similarity.view(np.int32)
    bits &= ~1
    bits[image_of_text, np.arange(texts)] |= 1
    return similarity, image_of_text


def ready_to_rank(ranker: Ranker, images: int, texts: int) -> Callable[[], object]:
    """What the memory of `ranker` is measured on; libraries are loaded and threads started before it counts."""
    ranker(*tie_free_problem(50, 250))
    similarity, image_of_text = tie_free_problem(images, texts)
    return partial(ranker, similarity, image_of_text)


def compare(images: int, texts: int) -> list[Row]:
    """One row per way at one size; the loop comes first and is what the others are compared with."""
    similarity, image_of_text = tie_free_problem(images, texts)
    rows: list[Row] = []
    found: list[tuple[Ints, Ints]] = []
    for way, ranker in WAYS.items():
        # The loop is too slow to run once more for its ranks: every timed call leaves them behind.
        seconds = _seconds(partial(_rank_and_keep, found, ranker, similarity, image_of_text))
        same = all(map(np.array_equal, found[-1], found[0]))
        memory = extra_peak_bytes(partial(ready_to_rank, ranker, images, texts)) / 1e6
        rows.append(Row(images, texts, way, seconds, (rows[0].seconds if rows else seconds) / seconds, memory, same))
    return rows


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'images × texts':>16}  {'way':<17} {'seconds':>9} {'ratio':>7} {'extra peak':>11}  same ranks"]
    for row in rows:
        size = f"{row.images:,} × {row.texts:,}"
        lines.append(
            f"{size:>16}  {row.way:<17} {row.seconds:>9.4f} {row.times_faster:>6.1f}x {row.extra_peak_mb:>8.1f} MB  "
            f"{'yes' if row.same_ranks else 'NO'}"
        )
    return "\n".join(lines)


def _rank_and_keep(found: list[tuple[Ints, Ints]], ranker: Ranker, similarity: Floats, image_of_text: Ints) -> None:
    found.append(ranker(similarity, image_of_text))


def _seconds(call: Callable[[], object]) -> float:
    once = median_seconds(call, 1, warm_up=False)
    return once if once > SECONDS_NOT_WORTH_REPEATING else median_seconds(call, REPEATS)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the ways do not agree on their numbers.
    """
    rows = [row for size in SIZES for row in compare(*size)]
    if not all(row.same_ranks for row in rows):
        raise SystemExit("the ways disagree on ranks")
    return rows


if __name__ == "__main__":
    print(table(measure()))
