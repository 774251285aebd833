"""The two charts of the demo."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from truepair.data.pairs import Array, BoolArray
from truepair.pages.kit.svg import BOTTOM, TOP, Chart, nice_top, quarters
from truepair.training.fit import Run


def learning_curves(runs: Mapping[str, Run], titles: Mapping[str, str]) -> Markup:
    """Dev rSum by epoch, a dot at the one that was kept; a line starts anew where training starts from a fresh network.

    Args:
        runs: by name, which is a line's colour.
        titles: what each is called.
    """
    records = [record for run in runs.values() for record in run.metrics]
    last = max(record["epoch"] for record in records)
    top = 100 * math.ceil(max(record["dev"]["rsum"] for record in records) / 100)
    step = -(-last // 10)
    ticks = range(step, last + 1, step)
    chart = Chart("epoch", "rSum on the dev split", (0, last), (0, top), marks=range(0, top + 1, 100), ticks=ticks)
    for name, run in runs.items():
        stages = [record["stage"] for record in run.metrics]
        for stage in sorted(set(stages)):
            points = [(r["epoch"], r["dev"]["rsum"]) for r in run.metrics if r["stage"] == stage]
            early = stage != stages[-1]
            chart.curve(points, f"line {name}{' early' if early else ''}")
            if early:
                restart = chart.x(points[-1][0] + 0.5)
                chart.line((restart, TOP), (restart, BOTTOM), "restart")
                chart.text(restart + 4, TOP + 12, "CRCL starts afresh")
        best = run.result["best_epoch"]
        reached = next(record["dev"]["rsum"] for record in run.metrics if record["epoch"] == best)
        chart.dot(best, reached, 4.5, f"dot {name}")
    said = ", ".join(f"{titles[name]} {run.result['dev']['rsum']:.0f}" for name, run in runs.items())
    return chart.drawn(f"Line chart of rSum on the dev split by epoch. At the best epochs: {said}.")


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
