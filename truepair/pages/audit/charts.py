"""The charts of the page, drawn as SVG that follows the page's colours: `class` names are those of its style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from truepair.audit.result import Verdict

BINS = 20
WIDTH, HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 390, 14, 190


def histogram(verdict: Verdict) -> Markup:
    """How many pairs have which probability, the flagged ones hatched."""
    edges = np.linspace(0, 1, BINS + 1)
    everyone = np.histogram(verdict.p_match, edges)[0]
    flagged = np.histogram(verdict.p_match[verdict.flagged], edges)[0]
    top = nice_top(int(everyone.max(initial=1)))
    parts = frame("probability that the pair matches", "pairs", top, f"{{:,.{0 if top >= 4 else 1}f}}")
    for left, right, count, marked in zip(edges[:-1], edges[1:], everyone, flagged, strict=True):
        x, wide = across(left) + 1, across(right) - across(left) - 2
        base = float(BOTTOM)
        for number, look in ((marked, "flagged"), (count - marked, "kept")):
            high = max(1.5, (BOTTOM - TOP - 8) * number / top) if number else 0.0
            if number:
                parts.append(
                    f'<rect class="{look}" x="{x:.1f}" y="{base - high:.1f}" width="{wide:.1f}" height="{high:.1f}"/>'
                )
            base -= high
    said = (
        f"Histogram of p_match of {len(verdict.p_match):,} pairs: {int(flagged.sum()):,} flagged, {everyone[-1]:,} "
        f"above {edges[-2]:.2f}"
    )
    return drawn(parts, said, patterned=True)


def reliability(bins: Sequence[Mapping[str, Any]]) -> Markup:
    """Share of matched pairs by predicted probability; on the diagonal the probability keeps its word."""
    parts = frame("probability that the pair matches", "share that does match", 1.0, "{:.2g}")
    parts.append(f'<line class="ideal" x1="{across(0)}" y1="{upward(0)}" x2="{across(1)}" y2="{upward(1)}"/>')
    known = [entry for entry in bins if entry["pairs"] and entry["matched"] is not None]
    most = max((entry["pairs"] for entry in known), default=1)
    points = [(across(entry["p_match"]), upward(entry["matched"]), entry["pairs"]) for entry in known]
    if points:
        parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)}"/>')
    for x, y, pairs in points:
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{2.5 + 4.5 * (pairs / most) ** 0.5:.1f}"/>')
    return drawn(parts, "Reliability diagram; the values are in the table below")


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
    return drawn(parts, said, height=98)


def frame(horizontal: str, vertical: str, top: float, numbers: str) -> list[str]:
    """Axes from 0 to 1 across and from 0 to `top` upwards, with their titles."""
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = upward(share)
        parts.append(f'<line class="{"axis" if share == 0 else "grid"}" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{numbers.format(share * top)}</text>')
        parts.append(f'<text x="{across(share)}" y="{BOTTOM + 16}" text-anchor="middle">{share:g}</text>')
    parts.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(horizontal)}</text>')
    parts.append(f'<text x="4" y="{TOP - 4}">{escape(vertical)}</text>')
    return parts


def across(share: float) -> float:
    return LEFT + (RIGHT - LEFT) * share


def upward(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP - 8) * share


def nice_top(largest: int) -> float:
    """The next number of 1, 2, 4 or 8 times a power of ten: its quarters read well."""
    power = 10 ** (len(str(max(1, largest))) - 1)
    return float(next(step * power for step in (1, 2, 4, 8, 10, 20) if step * power >= largest))


def drawn(parts: list[str], said: str, *, height: int = HEIGHT, patterned: bool = False) -> Markup:
    hatch = (
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="hatch-ground" width="6" height="6"/><line class="hatch-line" x1="0" y1="0" x2="0" y2="6"/>'
        "</pattern></defs>"
    )
    inside = (hatch if patterned else "") + "".join(parts)
    return Markup(f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {WIDTH} {height}">{inside}</svg>')
