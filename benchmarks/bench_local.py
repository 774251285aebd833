"""SGR and SAF against the loop over captions of the field's code: time, memory, and the same numbers.

Measured is all that follows the encoders of regions and words: self-attention and similarity ("cross", where the
loop attends to one caption after the other), or similarity within images and within texts ("intra").

python -m benchmarks.bench_local
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from benchmarks.measure import extra_peak_bytes, median_seconds
from benchmarks.plain_local import plain_image_scores, plain_scores, plain_text_scores
from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.region_word.local_engine import Fragments, LocalEngine
from truepair.engines.unit import unit

Part = Literal["cross", "intra"]
REPEATS = 3


@dataclass(frozen=True)
class Size:
    """A batch of encodings, at the field's sizes unless told otherwise; scores across modalities, or within both."""

    engine: Literal["sgr", "saf"]
    batch: int
    part: Part = "cross"
    regions: int = 36
    width: int = 1024
    similarity_width: int = 256
    words: tuple[int, int] = (8, 20)


SIZES = (Size("sgr", 32), Size("sgr", 64), Size("saf", 32), Size("saf", 64), Size("sgr", 32, "intra"))


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    size: str
    work: str
    way: str
    milliseconds: float
    times_faster: float
    extra_peak_mb: float
    largest_difference: float


class Problem:
    """An engine with weights as large as trained ones, and random encodings.

    Attributes:
        leaves: everything that a gradient is taken for.
    """

    def __init__(self, size: Size, dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        config = SGRConfig if size.engine == "sgr" else SAFConfig
        self.engine = LocalEngine(1, size.regions, 1, config(size.width, 1, size.similarity_width, dropout=0))
        with torch.no_grad():
            for name, parameter in self.engine.named_parameters():
                if name.startswith(("align.", "head.")):
                    spread = parameter.shape[-1] ** -0.5 if parameter.ndim == 2 else 0.1
                    parameter.add_(torch.randn_like(parameter) * spread)
            self.engine.score.weight.mul_(5)
        self.engine.to(dtype)
        self.images = random_fragments(torch.full((size.batch,), size.regions), size.width, dtype)
        self.texts = random_fragments(torch.randint(size.words[0], size.words[1] + 1, (size.batch,)), size.width, dtype)
        self.part = size.part
        parts = ("align.", "head.", "score.") + (
            ("image_attention.", "text_attention.") if size.part == "cross" else ()
        )
        compared: list[Tensor] = [p for n, p in self.engine.named_parameters() if n.startswith(parts)]
        self.leaves = [side for of in (self.images, self.texts) for side in (of.vectors, of.whole)] + compared
        self.weight = torch.randn(size.batch, size.batch)

    def scores(self, plain: bool) -> list[Tensor]:
        engine, images, texts = self.engine, self.images, self.texts
        if self.part == "intra":
            if plain:
                return [plain_image_scores(engine, images), plain_text_scores(engine, texts)]
            return [engine.image_scores(images), engine.text_scores(texts)]
        images = replace(images, whole=engine.image_attention(images.vectors, images.lengths))
        if plain:
            return [plain_scores(engine, images, texts, attend_texts=True)]
        texts = replace(texts, whole=engine.text_attention(texts.vectors, texts.lengths))
        return [engine.scores(images, texts)]

    def gradients(self, plain: bool) -> list[Tensor]:
        total = torch.stack([(scores * self.weight).sum() for scores in self.scores(plain)]).sum()
        found = list(torch.autograd.grad(total, self.leaves, allow_unused=True, materialize_grads=True))
        # What flows into padding, which the loop cuts off and ours adds as zeros, is nobody's gradient.
        for gradient, leaf in zip(found, self.leaves, strict=True):
            for fragments in (self.images, self.texts):
                if leaf is fragments.vectors:
                    gradient *= (torch.arange(leaf.shape[1]) < fragments.lengths[:, None])[..., None]
        return found

    @torch.no_grad()
    def forward(self, plain: bool) -> list[Tensor]:
        return self.scores(plain)


def random_fragments(lengths: Tensor, width: int, dtype: torch.dtype) -> Fragments:
    """Unit vectors with a common part, as encodings have one."""
    vectors = unit(torch.randn(len(lengths), int(lengths.max()), width) + 0.3 * torch.randn(width))
    vectors = vectors * (torch.arange(vectors.shape[1]) < lengths[:, None])[..., None]
    whole = unit(torch.randn(len(lengths), width))
    return Fragments(vectors.to(dtype).requires_grad_(), lengths, whole.to(dtype).requires_grad_())


WORK: dict[str, Callable[[Problem, bool], list[Tensor]]] = {
    "forward": Problem.forward,
    "forward + backward": Problem.gradients,
}
WAYS = {"loop over captions": True, "truepair": False}


def prepared_work(size: Size, work: str, plain: bool) -> Callable[[], list[Tensor]]:
    """The call whose extra memory counts, after one on a batch of two."""
    WORK[work](Problem(replace(size, batch=2)), plain)
    return partial(WORK[work], Problem(size), plain)


def compare(size: Size) -> list[Row]:
    """The loop and the engine, in turns, so that both meet the same state of the machine."""
    problem = Problem(size)
    name = f"{size.engine} {size.batch} {size.part}"
    rows: list[Row] = []
    for work, call in WORK.items():
        results = {way: call(problem, plain) for way, plain in WAYS.items()}  # warms up, too
        if work != "forward":
            exact = Problem(replace(size, batch=8), torch.float64)
            results = {way: call(exact, plain) for way, plain in WAYS.items()}
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(REPEATS):
            for way, plain in WAYS.items():
                seconds[way].append(median_seconds(partial(call, problem, plain), 1, warm_up=False))
        reference = next(iter(WAYS))
        for way, plain in WAYS.items():
            median = statistics.median(seconds[way])
            memory = extra_peak_bytes(partial(prepared_work, size, work, plain)) / 1e6
            faster = statistics.median(seconds[reference]) / median
            difference = largest_difference(work, results[way], results[reference])
            rows.append(Row(name, work, way, 1e3 * median, faster, memory, difference))
    return rows


def largest_difference(work: str, ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Of scores: the largest, relative to the spread of its matrix. Of gradients: the norm, relative to theirs.

    Gradients are compared in float64, on a batch of 8: in float32 now and then a ReLU near zero falls on the other
    side, in either way, and a single gradient jumps.
    """
    pairs = list(zip(ours, theirs, strict=True))
    if work == "forward":
        return max(float((a - b).abs().max() / (b.max() - b.min())) for a, b in pairs)
    apart, whole = (
        torch.stack(norms).norm() for norms in ([(a - b).norm() for a, b in pairs], [b.norm() for _, b in pairs])
    )
    return float(apart / whole)


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [
        f"{'engine, batch':<14} {'work':<19} {'way':<19} {'ms':>7} {'ratio':>6} {'extra peak':>11}  relative difference"
    ]
    lines += [
        f"{row.size:<14} {row.work:<19} {row.way:<19} {row.milliseconds:>7.0f} {row.times_faster:>5.2f}x "
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
    if any(row.largest_difference > (1e-4 if row.work == "forward" else 1e-9) for row in rows):
        raise SystemExit(f"the two ways disagree\n{table(rows)}")
    return rows


if __name__ == "__main__":
    print(table(measure()))
