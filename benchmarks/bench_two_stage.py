"""Two stages of retrieval against the whole matrix of a local engine: seconds, share of cells, and agreement.

The engines are newly initialised, so recall means nothing here; what must agree are the similarities of the cells that
both ways compute.

python -m benchmarks.bench_two_stage
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.data.config import Augmentation
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.text import Vocabulary
from truepair.engines.config import EngineConfig, GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.ensemble_model import EnsembleBlocks, EnsembleModel
from truepair.engines.regions_and_words import InputSizes, RegionsAndWords
from truepair.engines.retrieval_model import RetrievalModel, new_model
from truepair.evaluation import evaluate
from truepair.evaluation.two_stage import evaluate_two_stage

SIZES = ((200, 1_000),)
"""(images, texts): a fifth of Flickr30K's test set on both sides."""
TOPS = (20, 50)
MODEL_NAMES = ("sgr", "saf")
CONFIGS: dict[str, EngineConfig] = {
    "global": GlobalConfig(width=128),
    "sgr": SGRConfig(width=128, similarity_width=64),
    "saf": SAFConfig(width=128, similarity_width=64),
}
"""Half the default sizes: what a cell costs beside arithmetic weighs more here than in earnest."""
REGIONS, FEATURE_WIDTH = 36, 256
WORDS = tuple(f"w{number}" for number in range(500))
TOLERANCE = 1e-5
"""Cells are computed in other groups than rows, and sums of float32 round with their order."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    images: int
    texts: int
    model: str
    way: str
    seconds: float
    times_faster: float
    share: float
    largest_difference: float


class Remembering:
    """A model that keeps what it computes, so that two ways can be compared cell by cell."""

    def __init__(self, model: RetrievalModel) -> None:
        self.model = EnsembleModel([model])  # one alone is the model itself
        self.rows: list[Tensor] = []
        self.cells: list[tuple[Tensor, Tensor, Tensor]] = []

    def similarity_blocks(self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray) -> RememberingBlocks:
        return RememberingBlocks(self, self.model.similarity_blocks(pairs, image_rows, text_rows))


@dataclass(frozen=True)
class RememberingBlocks:
    """The blocks of such a model."""

    owner: Remembering
    blocks: EnsembleBlocks

    def __iter__(self) -> Iterator[Tensor]:
        for block in self.blocks:
            self.owner.rows.append(block)
            yield block

    def cells(self, image_index: Tensor, text_index: Tensor) -> list[Tensor]:
        pieces = list(self.blocks.cells(image_index, text_index))
        self.owner.cells.append((image_index, text_index, torch.cat(pieces)))
        return pieces


def problem(images: int, texts: int) -> Pairs:
    """Random features, and captions of 6 to 18 words."""
    draw = np.random.default_rng(0)
    captions = tuple(" ".join(draw.choice(WORDS, size=length)) for length in draw.integers(6, 19, size=texts))
    return Pairs(
        Images(draw.normal(size=(images, REGIONS, FEATURE_WIDTH)).astype(np.float32), tuple(map(str, range(images)))),
        Texts(captions, tuple(map(str, range(texts)))),
        np.repeat(np.arange(images), texts // images),
        np.arange(texts),
    )


def drawn_model(name: str) -> RetrievalModel:
    """A newly initialised model."""
    vocabulary = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", *WORDS))
    sizes = InputSizes(FEATURE_WIDTH, REGIONS, len(vocabulary))
    torch.manual_seed(0)
    return new_model(CONFIGS[name], RegionsAndWords(vocabulary, sizes, Augmentation()))


def compare(images: int, texts: int) -> list[Row]:
    """The whole matrix and every k, for every local engine, at one size."""
    proposer, pairs = drawn_model("global"), problem(images, texts)
    rows: list[Row] = []
    for name in MODEL_NAMES:
        model = Remembering(drawn_model(name))
        evaluate(model, problem(10, 50))  # what the first use brings in is not timed
        model.rows.clear()
        start = time.perf_counter()
        evaluate(model, pairs)
        whole = time.perf_counter() - start
        rows.append(Row(images, texts, name, "every cell", whole, 1.0, 1.0, 0.0))
        matrix = torch.cat(model.rows)
        for top in TOPS:
            found = evaluate_two_stage(proposer, model, pairs, top=top)
            image_index, text_index, similarity = model.cells[-1]
            difference = (matrix[image_index, text_index] - similarity).abs().max()
            ratio = whole / found.seconds
            rows.append(Row(images, texts, name, f"top {top}", found.seconds, ratio, found.share, float(difference)))
    return rows


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'images × texts':>14}  {'model':<6} {'way':<10} {'seconds':>8} {'ratio':>7} {'cells':>7}  difference"]
    for row in rows:
        size = f"{row.images:,} × {row.texts:,}"
        lines.append(
            f"{size:>14}  {row.model:<6} {row.way:<10} {row.seconds:>8.2f} {row.times_faster:>6.1f}x "
            f"{100 * row.share:>5.1f} %  {row.largest_difference:>10.1e}"
        )
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: a cell differs from that of the whole matrix by more than rounding.
    """
    rows = [row for size in SIZES for row in compare(*size)]
    if max(row.largest_difference for row in rows) > TOLERANCE:
        raise SystemExit("the two ways disagree on the similarity of a cell")
    return rows


if __name__ == "__main__":
    print(table(measure()))
