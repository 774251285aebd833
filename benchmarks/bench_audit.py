"""Random embeddings audited: time, pairs a second and peak memory at growing sizes, against a plain loop.

python -m benchmarks.bench_audit

Three ways: `loop` scores the first pairs one after the other, NumPy in float64; `scoring` scores all pairs; `audit` is
all that `truepair audit` does, to the pages and tables: scoring, the verdict, proposals for 5,000 pairs, duplicates.

Vectors lie in float16 files in a temporary folder, 2 GB of them for a million pairs. Each size runs in a process of its
own, whose whole memory counts.
"""

from __future__ import annotations

import contextlib
import io
import math
import multiprocessing
import multiprocessing.connection
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import peak_bytes
from truepair.audit.scoring.bank import TIE
from truepair.audit.scoring.by_embeddings import NEIGHBOURS, score_collection
from truepair.audit.scoring.indicators import NEIGHBOUR_TEMPERATURE
from truepair.audit.scoring.scoring_folder import open_scored
from truepair.cli.main import main
from truepair.data.formats.embeddings.files import open_embeddings

Floats = npt.NDArray[np.float64]

SIZES = (10_000, 100_000, 1_000_000)
WIDTH = 512
LOOPED = 500
MOST_BYTES = 2 * 10**9
_DRAWN_AT_ONCE = 50_000


@dataclass(frozen=True)
class Row:
    """One line of the table; `of_linear` is the time as a multiple of what the size before took a pair."""

    pairs: int
    way: str
    seconds: float
    pairs_per_second: float
    of_linear: float | None
    peak_mb: float | None
    largest_difference: float | None


def write_embeddings(folder: Path, pairs: int) -> str:
    """Random pairs whose cosines lie around 0.45, a tenth of them mismatched."""
    files = [folder / "images.npy", folder / "texts.npy"]
    maps = [np.lib.format.open_memmap(file, "w+", np.float16, (pairs, WIDTH)) for file in files]
    draw = np.random.default_rng(0)
    for first in range(0, pairs, _DRAWN_AT_ONCE):
        images = draw.standard_normal((min(_DRAWN_AT_ONCE, pairs - first), WIDTH), dtype=np.float32)
        texts = images + 2 * draw.standard_normal(images.shape, dtype=np.float32)
        wrong = len(texts) // 10
        texts[:wrong] = np.roll(texts[:wrong], 1, axis=0)
        maps[0][first : first + len(images)], maps[1][first : first + len(images)] = images, texts
    for values in maps:
        values.flush()
    return ",".join(map(str, files))


def score_all(source: str, folder: str) -> None:
    """From the open files to all scores in memory."""
    score_collection(open_embeddings(source), folder)


def audit_all(source: str, folder: str) -> None:
    """What users call.

    Raises:
        SystemExit: the audit failed; its words are on the standard error.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        status = main(["audit", source, "--embeddings", "--out", folder, "--quiet"])
    if status:
        raise SystemExit(status)


def in_own_process(call: Callable[[str, str], None], source: str, folder: Path) -> tuple[float, int]:
    """Seconds that a call takes in a process of its own, imports not counted, and the most memory of that process.

    Raises:
        SystemExit: it failed.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=send_cost, args=(call, source, str(folder), sending))
    process.start()
    sending.close()
    try:
        seconds, peak = receiving.recv()
    except EOFError:
        raise SystemExit(f"{call.__name__} failed") from None
    finally:
        process.join()
    return seconds, peak


def send_cost(
    call: Callable[[str, str], None], source: str, folder: str, sending: multiprocessing.connection.Connection
) -> None:
    start = time.perf_counter()
    call(source, folder)
    sending.send((time.perf_counter() - start, peak_bytes()))


WAYS: dict[str, Callable[[str, str], None]] = {"scoring": score_all, "audit": audit_all}


def measured(pairs: int, before: list[Row]) -> list[Row]:
    """The rows of one size; with the loop before them where no size was measured yet."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = write_embeddings(folder, pairs)
        for way, call in WAYS.items():
            seconds, peak = in_own_process(call, source, folder / way)
            last = next((row for row in reversed(before) if row.way == way), None)
            linear = None if last is None else seconds / (last.seconds * pairs / last.pairs)
            rows.append(Row(pairs, way, seconds, pairs / seconds, linear, peak / 1e6, None))
        if not before:
            started = time.perf_counter()
            looped = loop(source, folder / "scoring")
            spent = time.perf_counter() - started
            scored = open_scored(folder / "scoring")
            found = np.stack([scored.columns[name][:LOOPED] for name in looped])
            difference = float(np.abs(found - np.stack(list(looped.values()))).max())
            rows[0] = replace(rows[0], largest_difference=difference)
            rows.insert(0, Row(LOOPED, "loop", spent, LOOPED / spent, None, None, None))
    return rows


def loop(source: str, folder: Path) -> dict[str, Floats]:
    """The indicators of the first pairs, one pair after the other, against the bank of that folder."""
    bank = open_scored(folder).bank()
    X, Y = (side.double().numpy() for side in (bank.images, bank.texts))
    trust, bank_rows = bank.trust.double().numpy(), bank.rows.numpy()
    images, texts = (_unit(side) for side in open_embeddings(source).read(0, LOOPED))
    values: dict[str, list[float]] = {}
    for row, (x, y) in enumerate(zip(images, texts, strict=True)):
        others = bank_rows != row
        for name, value in one_pair(x, y, X[others], Y[others], trust[others], bank.temperature, bank.background):
            values.setdefault(name, []).append(value)
    return {name: np.array(found) for name, found in values.items()}


def one_pair(
    x: Floats, y: Floats, images: Floats, texts: Floats, trust: Floats, tau: float, background: float
) -> list[tuple[str, float]]:
    """The indicators of one pair, as `indicators` defines them."""
    own, m = x @ y, len(images)
    directions, a, b = (texts @ x, images @ y), images @ x, texts @ y
    odds = [own / tau - _log_sum_exp(s / tau) for s in directions]
    ranks = [1 + ((s > own + TIE).sum() + (s >= own - TIE).sum()) / 2 for s in directions]
    evidence = [math.exp(_log_sum_exp(np.append(s, own) / tau) - background) for s in directions]
    weight = trust**2 / (trust**2).sum()
    p, q = a - weight @ a, b - weight @ b
    fits = []
    for near, fit in ((a, b), (b, a)):
        nearest = near >= np.partition(near, -NEIGHBOURS)[-NEIGHBOURS] - TIE
        share = trust[nearest] * np.exp((near[nearest] - near.max()) / NEIGHBOUR_TEMPERATURE)
        fits.append(share @ fit[nearest] / share.sum())
    total = sum(evidence) / 2
    return [
        ("matching", sum(1 / (1 + math.exp(-o)) for o in odds) / 2),
        ("rank", 1 - math.log(ranks[0] * ranks[1]) / (2 * math.log(m + 1))),
        ("structure", (1 + weight @ (p * q) / math.sqrt((weight @ p**2) * (weight @ q**2))) / 2),
        ("neighbours", (1 + sum(fits) / 2) / 2),
        ("certainty", total / (total + m + 1)),
    ]


def table(rows: list[Row]) -> str:
    """The rows, aligned; `a million` is the time of a million pairs at the speed of that row."""
    lines = [
        f"{'pairs':>9}  {'way':<8} {'seconds':>9} {'pairs/s':>8} {'a million':>10} {'of linear':>9} {'peak':>9}  "
        "largest difference"
    ]
    for row in rows:
        linear = "" if row.of_linear is None else f"{row.of_linear:.2f}x"
        peak = "" if row.peak_mb is None else f"{row.peak_mb:,.0f} MB"
        difference = "" if row.largest_difference is None else f"{row.largest_difference:.0e}"
        lines.append(
            f"{row.pairs:>9,}  {row.way:<8} {row.seconds:>9.1f} {row.pairs_per_second:>8,.0f} "
            f"{1e6 / row.pairs_per_second:>8,.0f} s {linear:>9} {peak:>9}  {difference}".rstrip()
        )
    return "\n".join(lines)


def measure(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the loop finds other numbers, or a size takes 2 GB of memory or more.
    """
    rows: list[Row] = []
    for pairs in sizes:
        rows += measured(pairs, rows)
    if any(row.largest_difference is not None and row.largest_difference > 1e-4 for row in rows):
        raise SystemExit("the loop and the blocks disagree")
    if any(row.peak_mb is not None and row.peak_mb * 1e6 >= MOST_BYTES for row in rows):
        raise SystemExit("it took 2 GB of memory or more")
    return rows


def _unit(side: npt.NDArray[Any]) -> Floats:
    vectors = side.astype(np.float64)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _log_sum_exp(values: Floats) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))


if __name__ == "__main__":
    print(table(measure()))
