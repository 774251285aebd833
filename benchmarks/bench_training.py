"""Training pairs per second and memory of one optimizer step, against the same network in plain torch modules.

python -m benchmarks.bench_training
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.data.batch import ImageBatch, PairBatch, TextBatch
from truepair.engines.config import GlobalConfig, Pooling
from truepair.engines.global_engine import GlobalEngine
from truepair.engines.pooling import RANK_TEMPERATURE, RANK_WIDTH, rank_encodings
from truepair.losses import info_nce

BATCH = 128
VOCABULARY = 8000
REPEATS = 7


@dataclass(frozen=True)
class Size:
    """One problem: region features (regions × feature width), embedding width, pooling, words a caption."""

    name: str
    regions: int
    feature_width: int
    width: int
    pooling: Pooling
    words: tuple[int, int]


SIZES = (
    Size("fashion, max", 36, 56, 256, "max", (5, 14)),
    Size("fashion, gpo", 36, 56, 256, "gpo", (5, 14)),
    Size("field, gpo", 36, 2048, 1024, "gpo", (8, 20)),
)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    size: str
    way: str
    milliseconds: float
    pairs_per_second: float
    times_faster: float
    extra_peak_mb: float
    largest_difference: float


class PlainEngine(nn.Module):
    """The same network and parameters as `GlobalEngine`, computed the way the released codes do.

    Every word is embedded and projected, torch's GRU reads packed sequences, the rank weights are computed for every
    item, and torch sorts along the middle axis.
    """

    def __init__(self, engine: GlobalEngine, pooling: Pooling) -> None:
        super().__init__()
        self.engine = engine
        self.pooling = pooling

    def encode_images(self, images: ImageBatch) -> Tensor:
        return normalize(self.pool(self.engine.pool_regions, self.engine.regions(images), images.lengths), dim=1)

    def encode_texts(self, texts: TextBatch) -> Tensor:
        reader = self.engine.words
        packed = nn.utils.rnn.pack_padded_sequence(
            reader.embed(texts.words), texts.lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(reader.read(packed)[0], batch_first=True)
        width = reader.read.hidden_size
        return normalize(
            self.pool(self.engine.pool_words, (states[..., :width] + states[..., width:]) / 2, texts.lengths), dim=1
        )

    def pool(self, module: Any, elements: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(elements.shape[1])[None, :] < lengths[:, None]
        if self.pooling != "gpo":
            pooled: Tensor = module(elements, lengths)
            return pooled
        longest = elements.shape[1]
        encodings = rank_encodings(longest, RANK_WIDTH).expand(len(lengths), -1, -1)
        packed = nn.utils.rnn.pack_padded_sequence(encodings, lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(module.rank_reader(packed)[0], batch_first=True)
        scores = module.score((states[..., :RANK_WIDTH] + states[..., RANK_WIDTH:]) / 2).squeeze(-1)
        weights = torch.softmax(scores.masked_fill(~mask, -torch.inf) / RANK_TEMPERATURE, dim=1)
        smallest = torch.finfo(elements.dtype).min
        ordered = elements.masked_fill(~mask[..., None], smallest).sort(dim=1, descending=True).values
        return (ordered.masked_fill(~mask[..., None], 0) * weights[..., None]).sum(dim=1)


def random_batch(size: Size) -> PairBatch:
    """Random features, and captions whose words are as unequally frequent as words are (Zipf)."""
    draw = np.random.default_rng(0)
    features = torch.from_numpy(draw.standard_normal((BATCH, size.regions, size.feature_width), dtype=np.float32))
    lengths = torch.from_numpy(draw.integers(size.words[0], size.words[1] + 1, BATCH))
    words = torch.from_numpy(np.minimum(draw.zipf(1.3, (BATCH, int(lengths.max()))), VOCABULARY - 1))
    images = ImageBatch(features, torch.full((BATCH,), size.regions, dtype=torch.int64))
    return PairBatch(torch.arange(BATCH), images, TextBatch(words, lengths))


def make_step(size: Size, plain: bool) -> Callable[[], Tensor]:
    """One optimizer step on a fixed batch; returns the loss before it."""
    torch.manual_seed(0)
    engine = GlobalEngine(size.feature_width, VOCABULARY, GlobalConfig(width=size.width, pooling=size.pooling))
    encoder: Any = PlainEngine(engine, size.pooling) if plain else engine
    optimizer = torch.optim.AdamW(engine.parameters(), lr=1e-4)
    batch = random_batch(size)

    def step() -> Tensor:
        similarity = encoder.encode_images(batch.images) @ encoder.encode_texts(batch.texts).T
        loss = info_nce(similarity, temperature=0.05).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return step


def prepared_step(size: Size, plain: bool) -> Callable[[], Tensor]:
    """A step whose parameters and moments are there already, so that its extra memory is that of the computation."""
    step = make_step(size, plain)
    step()
    return step


def compare(size: Size) -> list[Row]:
    """The plain network and ours; the largest difference is that of the losses of five steps from the same start."""
    rows: list[Row] = []
    losses: list[list[float]] = []
    for way, plain in (("plain torch modules", True), ("truepair", False)):
        step = make_step(size, plain)
        losses.append([float(step()) for _ in range(5)])
        seconds = median_seconds(step, REPEATS)
        memory = extra_peak_bytes(partial(prepared_step, size, plain)) / 1e6
        faster = (rows[0].milliseconds if rows else 1e3 * seconds) / (1e3 * seconds)
        difference = max(abs(a - b) for a, b in zip(losses[-1], losses[0], strict=True))
        rows.append(Row(size.name, way, 1e3 * seconds, BATCH / seconds, faster, memory, difference))
    return rows


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [
        f"{'size':<14} {'way':<20} {'ms/step':>8} {'pairs/s':>9} {'ratio':>6} {'extra peak':>11}  difference of losses"
    ]
    lines += [
        f"{row.size:<14} {row.way:<20} {row.milliseconds:>8.1f} {row.pairs_per_second:>9.0f} {row.times_faster:>5.2f}x "
        f"{row.extra_peak_mb:>8.0f} MB  {row.largest_difference:.1e}"
        for row in rows
    ]
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the ways do not agree on their numbers.
    """
    rows = [row for size in SIZES for row in compare(size)]
    if any(row.largest_difference > 1e-4 for row in rows):
        raise SystemExit("the two ways disagree on losses")
    return rows


if __name__ == "__main__":
    print(table(measure()))
