"""The figures of a division report, each for one column of a paper, and its examples as a sheet of pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from truepair.data.pairs import BoolArray
from truepair.pages.kit.canvas import (
    BLACK,
    BLUE,
    DASHES,
    DPI,
    EPOCH,
    GREEN,
    PART_COLOURS,
    RUN_COLOURS,
    RUN_MARKERS,
    SOFT,
    TRUTH,
    empty_figure,
    legend_above,
    styled,
)
from truepair.pages.run.division import PER_END, DivisionReport, Example
from truepair.pages.run.epochs import PARTS, Epoch
from truepair.pages.run.indicators import SMALL, Indicator

DOTTED: dict[str, Any] = {"color": SOFT, "linewidth": 1, "linestyle": (0, (1, 1.5))}
BELIEFS = {"belief_matched_mean": "matched", "belief_mismatched_mean": "mismatched"}

TITLES = {"uncertainty": "u = {:.5f}", "belief": "belief = {:.3g}"}
ENDS = ("lowest", "highest")
CELL = (1.2, 1.85)  # inches, as the next line
LEFT, TOP, CAPTION, GAP = 0.3, 0.25, 0.6, 0.06
LINE, LINES = 23, 4  # of a caption


def parts_by_epoch(report: DivisionReport) -> Figure | None:
    """Sizes of the parts after each epoch, stacked; where the truth is known, the mismatched pairs of each hatched.

    None where no size was logged.
    """
    epochs = [epoch for epoch in report.epochs if epoch.divided]
    if not epochs:
        return None
    known = all(epoch.truth_known for epoch in epochs)
    with styled():
        figure, axes = empty_figure(EPOCH, "share of pairs (%)")
        places, bottom = [epoch.epoch for epoch in epochs], np.zeros(len(epochs))
        for part in PARTS:
            for truth, counts in layers(epochs, part, known).items():
                heights = 100 * counts / [epoch.pairs for epoch in epochs]
                hatch = "//////" if truth == "mismatched" else None
                edge: dict[str, Any] = {"edgecolor": "#333333", "linewidth": 0} if hatch else {}
                axes.bar(places, heights, 0.85, bottom=bottom, color=PART_COLOURS[part], hatch=hatch, **edge)
                bottom += heights
        handles = [
            Patch(facecolor=PART_COLOURS[part], label=part) for part in PARTS if any(layers(epochs, part, False)["all"])
        ]
        if known:
            handles.append(Patch(facecolor="white", edgecolor="#333333", hatch="//////", label="truly mismatched"))
        axes.set_ylim(0, 100)
        epoch_axis(axes, report.epochs)
        mark_restarts(axes, report.epochs, handles)
        legend_above(figure, handles)
    return figure


def layers(epochs: Sequence[Epoch], part: str, known: bool) -> dict[str, Any]:
    """Pairs of a part by epoch, the mismatched apart where the truth is known."""
    sizes = np.array([getattr(epoch, part) for epoch in epochs], dtype=float)
    if not known:
        return {"all": sizes}
    matched = np.array([epoch.matched_in(part) for epoch in epochs], dtype=float)
    return {"matched": matched, "mismatched": sizes - matched}


def detection_by_epoch(report: DivisionReport) -> Figure | None:
    """How well the division and the belief find the mismatched pairs; None where the truth is unknown."""
    curves: dict[str, tuple[str, str, Any, str]] = {
        "division accuracy": ("division_accuracy", BLACK, "solid", "o"),
        "AUROC of the belief": ("auroc", BLUE, (0, (4, 1.5)), "s"),
        "matched share of clean": ("clean_matched", GREEN, (0, (1, 1)), "^"),
    }
    handles: list[Any] = []
    with styled():
        figure, axes = empty_figure(EPOCH, "share of pairs, or AUROC")
        for label, (name, colour, dashes, marker) in curves.items():
            points = points_of(report, name)
            if points:
                handles += axes.plot(*points, color=colour, linestyle=dashes, marker=marker, label=label)
        if not handles:
            return None
        low = min(axes.get_ylim()[0], 0.5)
        axes.set_ylim(max(-0.02, low), 1.02)
        epoch_axis(axes, report.epochs)
        mark_restarts(axes, report.epochs, handles)
        legend_above(figure, handles)
    return figure


def belief_by_epoch(reports: Sequence[DivisionReport], labels: Sequence[str] = ()) -> Figure | None:
    """Mean belief of the truly matched and mismatched pairs after each epoch (GSC, figure 5a), a pair of curves a run.

    None where no run knows the truth.

    Args:
        labels: what the legend calls each run; not needed for one.
    """
    several = len(reports) > 1
    names = list(labels) or [report.name for report in reports]
    named = [(r, name) for r, name in zip(reports, names, strict=True) if any(points_of(r, key) for key in BELIEFS)]
    if not named:
        return None
    titles = {report.belief_axis for report, _ in named}
    handles: list[Any] = []
    with styled():
        figure, axes = empty_figure(EPOCH, f"mean {titles.pop() if len(titles) == 1 else 'belief'}")
        for number, (report, name) in enumerate(named):
            colour, marker = (these[number % len(these)] for these in (RUN_COLOURS, RUN_MARKERS))
            for key, truth in BELIEFS.items():
                look = {"color": colour if several else TRUTH[truth], "linestyle": DASHES[truth], "marker": marker}
                drawn = axes.plot(*points_of(report, key), label=truth, **look)
                handles += [] if several else drawn
            if several:
                handles.append(Line2D([], [], color=colour, marker=marker, label=name))
        if several:
            handles += [Line2D([], [], color=SOFT, linestyle=DASHES[truth], label=truth) for truth in TRUTH]
        axes.set_ylim(bottom=0)
        if axes.get_ylim()[1] > SMALL:
            axes.set_ylim(-0.02, 1.02)
        epoch_axis(axes, [epoch for report, _ in named for epoch in report.epochs])
        if len({tuple(epoch.stage for epoch in report.epochs) for report, _ in named}) == 1:
            mark_restarts(axes, named[0][0].epochs, handles)
        legend_above(figure, handles)
    return figure


def epoch_axis(axes: Axes, epochs: Sequence[Epoch]) -> None:
    """Whole epochs, with half a step of room at both ends so that one epoch alone looks like one."""
    numbers = [epoch.epoch for epoch in epochs]
    axes.set_xlim(min(numbers) - 0.6, max(numbers) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def mark_restarts(axes: Axes, epochs: Sequence[Epoch], handles: list[Any]) -> None:
    """A line where training starts anew from a fresh network."""
    starts = [now.epoch - 0.5 for before, now in pairwise(epochs) if now.stage != before.stage]
    for start in starts:
        axes.axvline(start, **DOTTED)
    if starts:
        handles.append(Line2D([], [], label="fresh network", **DOTTED))


def points_of(report: DivisionReport, name: str) -> list[tuple[float, ...]]:
    """The epochs that know a figure and its values, as two rows; empty where none does."""
    known = [(epoch.epoch, getattr(epoch, name)) for epoch in report.epochs if getattr(epoch, name) is not None]
    return list(zip(*known, strict=True))


def indicator_histogram(indicator: Indicator, mismatched: BoolArray | None) -> Figure:
    """Distribution of an indicator over the pairs, matched and mismatched ones apart where the truth is known.

    Heights are shares of all pairs, so that the fitted components, where there are any, lie on the same scale
    (GSC, figure 5b–d).
    """
    values, edges = indicator.values, indicator.edges
    weight = 100 / len(values)
    groups = {"all": np.ones(len(values), dtype=bool)}
    if mismatched is not None:
        groups = {"matched": ~mismatched, "mismatched": mismatched}
    handles: list[Any] = []
    with styled():
        figure, axes = empty_figure(indicator.axis, "share of all pairs, per bin (%)")
        for truth, chosen in groups.items():
            if not chosen.any():
                continue
            colour, dashes = TRUTH.get(truth, BLUE), DASHES.get(truth, "solid")
            heights = weight * np.histogram(values[chosen], edges)[0]
            axes.stairs(heights, edges, fill=True, color=colour, alpha=0.35)
            axes.stairs(heights, edges, color=colour, linestyle=dashes, linewidth=1.2)
            handles.append(
                Patch(facecolor=(colour, 0.35), edgecolor=colour, linestyle=dashes, linewidth=1.2, label=truth)
            )
        if indicator.components is not None:
            handles += draw_components(axes, indicator)
        if indicator.cut is not None:
            axes.axvline(indicator.cut, **DOTTED)
            handles.append(Line2D([], [], label="division", **DOTTED))
        axes.set_ylim(bottom=0)
        axes.set_xlim(edges[0], edges[-1])
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.ticklabel_format(axis="x", useOffset=False)
        legend_above(figure, handles)
    return figure


def draw_components(axes: Axes, indicator: Indicator) -> list[Any]:
    """The fitted normal distributions, as shares of all pairs in a bin; paler where they were set aside."""
    assert indicator.components is not None
    edges, used = indicator.edges, indicator.components.used
    at = np.linspace(edges[0], edges[-1], 400)
    handles = []
    dashes: dict[str, Any] = {"lower": (0, (4, 1.5)), "upper": "solid"}
    for (side, dash), density in zip(dashes.items(), indicator.components.densities(at), strict=True):
        look: dict[str, Any] = {"color": BLACK if used else "#AAAAAA", "linestyle": dash, "linewidth": 1.1}
        look["label"] = f"{side} Gaussian" + ("" if used else " (not used)")
        handles += axes.plot(at, 100 * (edges[1] - edges[0]) * density, **look)
    return handles


def example_sheet(report: DivisionReport) -> Figure | None:
    """The examples of the parts, lowest value on the left, highest on the right (in the manner of UGNCL's figure 3).

    None where the data has no pixels.
    """
    shown = [example for example in report.examples if example.picture is not None]
    parts = [part for part in PARTS if any(example.part == part for example in shown)]
    if not parts:
        return None
    columns = PER_END * len(ENDS)
    width, height = CELL[0] * columns + LEFT, CELL[1] * len(parts) + TOP
    with styled():
        figure = Figure(figsize=(width, height), dpi=DPI)
        grid = figure.subplots(len(parts), columns, squeeze=False)
        figure.subplots_adjust(LEFT / width, CAPTION / height, 1 - GAP / width, 1 - 2 * TOP / height, 0.12, 0.75)
        for axes in grid.flat:
            axes.set_axis_off()
        for row, part in enumerate(parts):
            for end in ENDS:
                chosen = [example for example in shown if (example.part, example.end) == (part, end)]
                for place, example in enumerate(chosen):
                    column = place if end == "lowest" else columns - 1 - place  # the outermost at the outer edge
                    draw_example(grid[row, column], example, report.ordered_by)
            middle = grid[row, 0].get_position()
            figure.text(0.3 * LEFT / width, (middle.y0 + middle.y1) / 2, part, rotation=90, va="center", weight="bold")
        for end, first in zip(ENDS, (0, PER_END), strict=True):
            left, right = grid[0, first].get_position().x0, grid[0, first + PER_END - 1].get_position().x1
            title = f"{end} {report.ordered_by}"
            figure.text((left + right) / 2, 1 - 0.4 * TOP / height, title, ha="center", va="top", weight="bold")
    return figure


def draw_example(axes: Axes, example: Example, ordered_by: str) -> None:
    assert example.picture is not None
    axes.imshow(example.picture)
    title, colour = TITLES[ordered_by].format(example.value), SOFT
    if example.mismatched is not None:
        colour = TRUTH["mismatched" if example.mismatched else "matched"]
        title += "  ✗" if example.mismatched else "  ✓"
    axes.set_title(title, fontsize=7.5, color=colour, pad=3)
    lines = textwrap.wrap(example.caption, LINE, max_lines=LINES, placeholder=" …")
    lines += [""] * (LINES - len(lines))
    axes.text(
        0.5, -0.06, "\n".join(lines), transform=axes.transAxes, ha="center", va="top", fontsize=6.5, parse_math=False
    )
