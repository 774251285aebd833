"""The two charts of the demo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from truepair.data.pairs import Array, BoolArray
from truepair.pages.kit.svg import BOTTOM, TOP, Chart, nice_top, quarters


@dataclass(frozen=True)
class Curve:
    """Dev rSum of one run: `name` is its colour, `metrics` one record an epoch, `best` the epoch that was kept."""

    name: str
    metrics: Sequence[dict[str, Any]]
    best: int


def learning_curves(curves: Sequence[Curve], description: str) -> Markup:
    """Dev rSum by epoch; a line starts anew where training starts from a fresh network."""
    last = max(record["epoch"] for curve in curves for record in curve.metrics)
    top = 100 * math.ceil(max(record["dev"]["rsum"] for curve in curves for record in curve.metrics) / 100)
    step = -(-last // 10)
    ticks = range(step, last + 1, step)
    chart = Chart("epoch", "rSum on the dev split", (0, last), (0, top), marks=range(0, top + 1, 100), ticks=ticks)
    for curve in curves:
        stages = [record["stage"] for record in curve.metrics]
        for stage in sorted(set(stages)):
            points = [(r["epoch"], r["dev"]["rsum"]) for r in curve.metrics if r["stage"] == stage]
            early = stage != stages[-1]
            chart.curve(points, f"line {curve.name}{' early' if early else ''}")
            if early:
                restart = chart.x(points[-1][0] + 0.5)
                chart.line((restart, TOP), (restart, BOTTOM), "restart")
                chart.text(restart + 4, TOP + 12, "CRCL starts afresh")
        best = next(r["dev"]["rsum"] for r in curve.metrics if r["epoch"] == curve.best)
        chart.dot(curve.best, best, 4.5, f"dot {curve.name}")
    return chart.drawn(description)


def belief_histogram(belief: Array, mismatched: BoolArray, threshold: float, description: str) -> Markup:
    """How many pairs have which label: truly matched ones upwards, mismatched ones downwards."""
    edges = np.linspace(0, 1, 26)
    counts = [np.histogram(belief[chosen], edges)[0] for chosen in (~mismatched, mismatched)]
    up, down = (nice_top(int(count.max(initial=1))) for count in counts)
    marks = [mark for mark in quarters(max(up, down)) if mark <= up]
    marks += [-mark for mark in quarters(max(up, down))[1:] if mark <= down]
    title = "label of the pair (0 = mismatched, 1 = matched)"
    chart = Chart(title, "pairs", (0, 1), (-down, up), marks=marks, ticks=quarters(1))
    for count, look, sign in zip(counts, ("bar-right", "bar-wrong"), (1, -1), strict=True):
        for left, many in zip(edges[:-1], count.tolist(), strict=True):
            if many:
                top, base = sorted((chart.y(sign * many), chart.y(0)))
                chart.box(chart.x(left) + 1, top, chart.x(edges[1]) - chart.x(0) - 2, base - top, look)
    chart.line((chart.x(threshold), TOP), (chart.x(threshold), BOTTOM), "ideal")
    return chart.drawn(description)
