"""From the runs of the grand table to its page: one HTML file with a script of its own, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from truepair.pages.kit.page import render


@dataclass(frozen=True)
class GrandRun:
    """One run as the page shows it.

    Attributes:
        noise: what was shuffled and how much, in words.
        rsum, dev: of test and dev, at the epoch kept.
        auroc: at the last one; None without noise or where nobody knows.
        epochs: all that were trained, of every stage; None where the record does not say.
        recalls: R@1, 5, 10 image → text, then text → image, of test.
        curve: dev rSum of each epoch; empty where the record has none. `best`: the epoch kept, from 1; None of several.
        warm_up: the epoch kept is one of the warm-up.
        linear_algebra: whose it was: minutes with another one cannot be compared.
    """

    name: str
    method: str
    data: str
    engine: str
    noise: str
    seed: int
    rsum: float
    dev: float
    auroc: float | None
    minutes: float
    epochs: int | None
    date: str
    version: str
    command: str
    recalls: tuple[float, ...]
    curve: tuple[float, ...]
    best: int | None
    warm_up: bool
    linear_algebra: str


def grand_page(
    runs: Sequence[GrandRun],
    *,
    total: int,
    ranks: Mapping[str, float],
    distance: float,
    blocks: int,
    diverged: Sequence[float] = (),
) -> str:
    """The page.

    Args:
        total: runs that there should be.
        diverged: minutes of each of those that are there and have no figures.
        ranks: method → mean rank, the best first; empty where nothing can be compared.
        distance: critical difference of these.
        blocks: how many conditions they are over.
    """
    script = _script()
    digest = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "grand/page.html",
        there=len(runs) + len(diverged),
        total=total,
        diverged=len(diverged),
        versions=sorted({run.version for run in runs}),
        methods=len({run.method for run in runs}),
        hours=sum([*(run.minutes for run in runs), *diverged]) / 60,
        ranks=rank_chart(ranks, distance) if ranks else "",
        blocks=blocks,
        warm_up=any(run.warm_up for run in runs),
        linear_algebras=len({run.linear_algebra for run in runs}),
        runs=Markup(json.dumps([asdict(run) for run in runs], ensure_ascii=False).replace("<", "\\u003c")),
        script=Markup(script),
        digest=digest,
    )


@cache
def _script() -> str:
    return (Path(__file__).parent / "script.js").read_text(encoding="utf-8")


def rank_chart(ranks: Mapping[str, float], distance: float) -> Markup:
    """A row a method: a dot at its mean rank, and a band of one critical difference behind it."""
    left, right, row, worst = 300, 40, 28, max(len(ranks), max(ranks.values()))
    height = row * len(ranks) + 44

    def x(rank: float) -> float:
        return round(left + (900 - left - right) * (rank - 1) / max(worst - 1, 1), 1)

    described = "; ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    parts = [f'<svg viewBox="0 0 900 {height}" role="img" aria-label="Mean ranks: {escape(described)}">']
    for tick in range(1, int(worst) + 1):
        parts.append(f'<line class="gridline" x1="{x(tick)}" x2="{x(tick)}" y1="8" y2="{height - 30}"/>')
        parts.append(f'<text x="{x(tick)}" y="{height - 12}" text-anchor="middle">{tick}</text>')
    for place, (name, rank) in enumerate(ranks.items()):
        y = 8 + row * place + row // 2
        parts.append(f'<line class="distance" x1="{x(rank)}" x2="{min(x(rank + distance), 896)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<circle class="dot" cx="{x(rank)}" cy="{y}" r="6"/>')
        parts.append(f'<text x="{left - 16}" y="{y + 4}" text-anchor="end">{escape(name)} ({rank:.2f})</text>')
    return Markup("".join([*parts, "</svg>"]))
