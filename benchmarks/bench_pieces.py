"""A batch of 4,096 pairs encoded at once and in pieces (GradCache): seconds of a step, extra memory, and agreement.

Two towers of four residual layers with heads of 256 numbers, trained by CRCL; gradients are compared in units of the
largest one.

python -m benchmarks.bench_pieces
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.correspondence import CorrespondenceMemory
from truepair.data.batch import PairBatch
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Forward, Stage
from truepair.training.pieces import ForwardInPieces

BATCH, HEAD, WIDTH, LAYERS = 4096, 256, 256, 4
PIECES = (None, 256)
MOST_BYTES = 2e9


@dataclass(frozen=True)
class Rows:
    """Vectors, one an item."""

    vectors: Tensor

    def __len__(self) -> int:
        return len(self.vectors)

    def to(self, device: torch.device) -> Rows:
        return Rows(self.vectors.to(device))

    def piece(self, rows: slice) -> Rows:
        return Rows(self.vectors[rows])


class Residual(nn.Module):
    """x + W₂ relu(W₁ x)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, rows: Tensor) -> Tensor:
        made: Tensor = rows + self.inner(rows)
        return made


class Towers(CosineEngine):
    """One for images, one for texts."""

    vector_width = HEAD

    def __init__(self) -> None:
        super().__init__()
        self.regions, self.words = self.new_region_encoder(), self.new_region_encoder()

    def new_region_encoder(self) -> nn.Module:
        return nn.Sequential(*(Residual() for _ in range(LAYERS)), nn.Linear(WIDTH, HEAD))

    def image_features(self, images: Rows, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors((regions or self.regions)(images.vectors)))

    def text_features(self, texts: Rows) -> Features:
        return Features(unit_vectors(self.words(texts.vectors)))


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    piece: int | None
    seconds: float
    extra_bytes: int
    largest_difference: float


def step(piece: int | None, batch: int) -> tuple[Towers, Callable[[], None]]:
    """An engine, and what gives it the gradients of a batch."""
    torch.manual_seed(0)
    engine, method = Towers(), build_method("crcl")
    memory = CorrespondenceMemory(batch)
    method.prepare(memory)
    images, texts = (Rows(torch.randn(batch, WIDTH)) for _ in range(2))
    pairs = PairBatch(torch.arange(batch), images, texts)
    position = EpochPosition(0, 1, (Stage(1),))

    def run() -> None:
        engine.zero_grad(set_to_none=True)
        forward = Forward(engine, pairs)
        if piece is not None:
            forward = ForwardInPieces(engine, pairs, None, piece, (0, 0, 1, 0), precision)
        forward.backward(method.batch_loss(forward, position, memory).per_pair.mean())

    return engine, run


def precision() -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=False)


def prepared(piece: int | None) -> Callable[[], None]:
    """The step in a fresh process, after a small one that brings in all there is to import."""
    step(piece, 256)[1]()
    engine, run = step(piece, BATCH)
    for parameter in engine.parameters():
        parameter.grad = torch.zeros_like(parameter)  # gradients are there in training, too
    return run


def measure() -> list[Row]:
    rows, expected = list[Row](), list[Tensor]()
    for piece in PIECES:
        engine, run = step(piece, BATCH)
        seconds = median_seconds(run, 1, warm_up=False)
        gradients = [parameter.grad for parameter in engine.parameters() if parameter.grad is not None]
        expected = expected or [gradient.clone() for gradient in gradients]
        largest = max(float(gradient.abs().max()) for gradient in expected)
        apart = max(float((a - b).abs().max()) for a, b in zip(gradients, expected, strict=True)) / largest
        rows.append(Row(piece, seconds, extra_peak_bytes(partial(prepared, piece)), apart))
    assert max(row.largest_difference for row in rows) < 1e-4
    assert all(row.extra_bytes < MOST_BYTES for row in rows if row.piece is not None)
    return rows


def table(rows: list[Row]) -> str:
    lines = [f"{'pieces of':>10} {'seconds':>9} {'extra memory':>13} {'gradients apart':>16}"]
    lines += [
        f"{row.piece or 'the batch':>10} {row.seconds:9.2f} {row.extra_bytes / 1e9:10.2f} GB "
        f"{row.largest_difference:16.1e}"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
