"""The pictures of the page: two charts as SVG that follow the page's colours, and drawings as PNG data."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from truepair.data.pairs import Array, BoolArray

# Matplotlib wants colours, the page has variables that change with the colour scheme: these stand in for them.
_STAND_INS = {
    name: f"#0a00{number:02x}"
    for number, name in enumerate(("ink", "soft", "rule", "clean", "plain", "robust", "matched", "mismatched"), start=1)
}
_DASHES = {"clean": (0, (5, 2)), "plain": (0, (2, 1.2)), "robust": "solid"}  # colour is not the only difference
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "truepair",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.edgecolor": _STAND_INS["rule"],
    "axes.labelcolor": _STAND_INS["soft"],
    "text.color": _STAND_INS["soft"],
    "xtick.color": _STAND_INS["soft"],
    "ytick.color": _STAND_INS["soft"],
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Curve:
    """Dev rSum of one run: `name` is its colour, `metrics` one record an epoch, `best` the epoch that was kept."""

    name: str
    metrics: Sequence[dict[str, Any]]
    best: int


def learning_curves(curves: Sequence[Curve], description: str) -> Markup:
    """Dev rSum by epoch; a line starts anew where training starts from a fresh network."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _empty("epoch", "rSum on the dev split")
        for curve in curves:
            colour, stages = _STAND_INS[curve.name], [record["stage"] for record in curve.metrics]
            for stage in sorted(set(stages)):
                points = [(r["epoch"], r["dev"]["rsum"]) for r in curve.metrics if r["stage"] == stage]
                last = stage == stages[-1]
                (line,) = axes.plot(*zip(*points, strict=True), color=colour, linestyle=_DASHES[curve.name])
                line.set_linewidth(2 if last else 1.2)
                if not last:
                    _mark_restart(axes, points[-1][0] + 0.5)
            best = next(r["dev"]["rsum"] for r in curve.metrics if r["epoch"] == curve.best)
            axes.plot(curve.best, best, "o", color=colour, markersize=6)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return _svg(figure, description)


def belief_histogram(belief: Array, mismatched: BoolArray, threshold: float, description: str) -> Markup:
    """How many pairs have which label: truly matched ones upwards, mismatched ones downwards."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _empty("believed label (0 = mismatched, 1 = matched)", "pairs")
        edges = np.linspace(0, 1, 26)
        for name, chosen, sign in (("matched", ~mismatched, 1), ("mismatched", mismatched, -1)):
            counts = np.histogram(belief[chosen], edges)[0]
            axes.bar(edges[:-1], sign * counts, 0.034, align="edge", color=_STAND_INS[name])
        axes.axhline(0, color=_STAND_INS["soft"], lw=0.8)
        axes.axvline(threshold, color=_STAND_INS["ink"], lw=1, linestyle=(0, (3, 3)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
        return _svg(figure, description)


def png_source(picture: Array) -> str:
    """A picture, (H, W, 3) uint8, as the `src` of an `<img>`."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _empty(horizontal: str, vertical: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.6, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(axis="y", color=_STAND_INS["rule"], lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _mark_restart(axes: Axes, epoch: float) -> None:
    axes.axvline(epoch, color=_STAND_INS["robust"], lw=1, linestyle=(0, (1, 3)))
    axes.annotate(
        "CRCL starts\nafresh",
        (epoch, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        horizontalalignment="right",
        fontsize=9,
        color=_STAND_INS["robust"],
    )


def _svg(figure: Figure, description: str) -> Markup:
    """The figure as an `<svg>` element to stand in a page: no size of its own, no metadata, the page's colours."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' (?:xmlns(?::\w+)?|version|width="[\d.]+pt" height)="[^"]*"', "", text, count=5)
    for name, stand_in in _STAND_INS.items():
        text = text.replace(stand_in, f"var(--{name})")
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1))
