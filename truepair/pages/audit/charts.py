"""The charts of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from truepair.audit.result import Verdict
from truepair.pages.kit.svg import BOTTOM, TOP, WIDTH, Chart, nice_top, quarters, svg

BINS = 20
UNIT = (0.0, 1.0)
MATCH = "probability that the pair matches"


def histogram(verdict: Verdict) -> Markup:
    """How many pairs have which probability, the flagged ones hatched."""
    edges = np.linspace(0, 1, BINS + 1)
    everyone = np.histogram(verdict.p_match, edges)[0]
    flagged = np.histogram(verdict.p_match[verdict.flagged], edges)[0]
    top = nice_top(int(everyone.max(initial=1)))
    number = f"{{:,.{0 if top >= 4 else 1}f}}"
    chart = Chart(MATCH, "pairs", UNIT, (0, top), marks=quarters(top), ticks=quarters(1), number=number)
    for left, right, count, marked in zip(edges[:-1], edges[1:], everyone, flagged, strict=True):
        base = float(BOTTOM)
        for many, look in ((marked, "flagged"), (count - marked, "kept")):
            if many:
                high = max(1.5, (BOTTOM - TOP) * many / top)
                base -= high
                chart.box(chart.x(left) + 1, base, chart.x(right) - chart.x(left) - 2, high, look)
    said = (
        f"Histogram of p_match of {len(verdict.p_match):,} pairs: {int(flagged.sum()):,} flagged, {everyone[-1]:,} "
        f"above {edges[-2]:.2f}"
    )
    return chart.drawn(said)


def reliability(bins: Sequence[Mapping[str, Any]]) -> Markup:
    """Share of matched pairs by predicted probability; on the diagonal the probability is calibrated."""
    marks = quarters(1)
    chart = Chart(MATCH, "share that does match", UNIT, UNIT, marks=marks, ticks=marks, number="{:.2g}")
    chart.line((chart.x(0), chart.y(0)), (chart.x(1), chart.y(1)), "ideal")
    known = [entry for entry in bins if entry["pairs"] and entry["matched"] is not None]
    most = max((entry["pairs"] for entry in known), default=1)
    if known:
        chart.curve([(entry["p_match"], entry["matched"]) for entry in known], "line")
    for entry in known:
        chart.dot(entry["p_match"], entry["matched"], 2.5 + 4.5 * (entry["pairs"] / most) ** 0.5)
    return chart.drawn("Reliability diagram; the values are in the table below")


def estimate(verdict: Verdict, truth: float | None) -> Markup:
    """The estimated share of mismatched pairs with its interval, the share flagged, and the truth where it is known."""
    flagged = float(verdict.flagged.mean()) if len(verdict.flagged) else 0.0
    largest = max(verdict.noise_rate_high, flagged, truth or 0.0)
    top = next((limit for limit in (0.05, 0.1, 0.2, 0.5) if largest <= 0.9 * limit), 1.0)

    def x(share: float) -> float:
        return 20 + (WIDTH - 40) * share / top

    parts = [f'<line class="axis" x1="{x(0)}" y1="72" x2="{x(top)}" y2="72"/>']
    for tick in np.linspace(0, top, 6):
        parts.append(f'<line class="axis" x1="{x(tick):.1f}" y1="72" x2="{x(tick):.1f}" y2="77"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="92" text-anchor="middle">{100 * tick:.3g} %</text>')
    low, high = x(verdict.noise_rate_low), x(verdict.noise_rate_high)
    parts.append(f'<rect class="span" x="{low:.1f}" y="34" width="{max(2, high - low):.1f}" height="26" rx="3"/>')
    middle = x(verdict.noise_rate)
    parts.append(f'<line class="estimate" x1="{middle:.1f}" y1="28" x2="{middle:.1f}" y2="66"/>')
    parts.append(f'<path class="flagged-mark" d="M{x(flagged):.1f} 60l6 10h-12z"/>')
    if truth is not None:
        parts.append(f'<circle class="truth" cx="{x(truth):.1f}" cy="22" r="4.5"/>')
    span = f"{100 * verdict.noise_rate_low:.1f} to {100 * verdict.noise_rate_high:.1f} %"
    said = f"Estimate {100 * verdict.noise_rate:.1f} %, interval {span}"
    return svg(parts, said, height=98)
