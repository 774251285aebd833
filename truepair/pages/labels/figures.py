"""The figures of a page of labels. Classes are told apart by colour, mark and name."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from truepair.data.pairs import Array, IntArray
from truepair.evaluation.class_retrieval import PrecisionRecall
from truepair.pages.kit.canvas import (
    BLUE,
    COLUMN,
    DPI,
    ORANGE,
    RUN_COLOURS,
    RUN_MARKERS,
    empty_figure,
    legend_above,
    marks,
    styled,
)
from truepair.pages.kit.page import clipped
from truepair.pages.labels.inspection import Planes

MOST_WRITTEN = 16  # classes up to which every cell of a matrix holds its number
MOST_NAMED = 40  # classes up to which every row of a matrix has its name
MOST_PLACED = 14  # classes that are shown in a plane: twice the colours
SIZE = 5.2  # inches
LETTERS = 14


def matrix(values: Array, names: tuple[str, ...], *, vertical: str, counts: bool) -> Figure:
    """A (K, K) matrix as a heat map: probabilities, or counts coloured by their share of the row; NaN stays empty."""
    with np.errstate(invalid="ignore"):
        shades = values / values.sum(axis=1, keepdims=True) if counts else values
    size = len(names)
    with styled():
        figure = Figure(figsize=(SIZE, 0.84 * SIZE), dpi=DPI, layout="constrained")
        axes = figure.subplots()
        drawn = axes.imshow(np.ma.masked_invalid(shades), cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        axes.set(xlabel="corrected label", ylabel=vertical)
        step = -(-size // MOST_NAMED)
        ticks = range(0, size, step)
        labels = [clipped(names[tick], LETTERS) for tick in ticks]
        font: dict[str, Any] = {"fontsize": 7 if size <= MOST_WRITTEN else 5, "parse_math": False}
        axes.set_xticks(ticks, labels, rotation=90, **font)
        axes.set_yticks(ticks, labels, **font)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if size <= MOST_WRITTEN:
            write_cells(axes, values, shades, counts)
        bar = figure.colorbar(drawn, ax=axes, fraction=0.05, pad=0.02)
        bar.set_label("share of the row" if counts else "mean probability")
        bar.outline.set_visible(False)
    return figure


def write_cells(axes: Axes, values: Array, shades: Array, counts: bool) -> None:
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            text = f"{value:,.0f}" if counts else f"{value:.2f}".removeprefix("0")
            colour = "white" if shades[row, column] > 0.55 else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize=5.5, color=colour)


def precision_recall_curves(curves: PrecisionRecall) -> Figure:
    """Precision by recall, both ways."""
    with styled():
        figure, axes = empty_figure("recall", "precision")
        handles = []
        ways = [("image → text", curves.i2t, BLUE, "-", "o"), ("text → image", curves.t2i, ORANGE, "--", "s")]
        for name, precision, colour, dashes, marker in ways:
            handles += axes.plot(
                curves.recall, precision, color=colour, linestyle=dashes, marker=marker, markevery=10, label=name
            )
        axes.set(xlim=(0, 1), ylim=(0, 1))
        legend_above(figure, handles)
    return figure


def features_in_the_plane(planes: Planes, names: tuple[str, ...]) -> Figure:
    """Raw features above, learned ones below; images to the left, texts to the right (UOT-RCL, figure 7).

    The learned features of both sides share one plane; every raw one is a plane of its own.
    """
    rows = [
        ("raw features", (planes.raw_images, planes.raw_texts)),
        ("learned features", (planes.learned_images, planes.learned_texts)),
    ]
    shown = largest_classes(np.concatenate([planes.image_labels, planes.text_labels]))
    with styled():
        figure = Figure(figsize=(2 * COLUMN[0], 2 * COLUMN[0] + 0.6), dpi=DPI, layout="constrained")
        grid = figure.subplots(2, 2, squeeze=False)
        handles: list[Any] = []
        for row, (title, sides) in enumerate(rows):
            both = [points for points in sides if points is not None]
            for column, (side, points) in enumerate(zip(("images", "texts"), sides, strict=True)):
                axes = grid[row, column]
                axes.set_title(f"{title}, {side}", fontsize=8)
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set(visible=True, color="#CCCCCC")
                if points is None:
                    axes.text(0.5, 0.5, "no vectors to place", ha="center", va="center", transform=axes.transAxes)
                    continue
                labels = planes.image_labels if column == 0 else planes.text_labels
                drawn = scatter(axes, points, labels, shown, names)
                handles = handles or drawn
                if row == 1:
                    within(axes, np.concatenate(both))
        if handles:
            legend = figure.legend(handles=handles, loc="outside lower center", ncols=min(5, len(handles)))
            for text in legend.get_texts():
                text.set_parse_math(False)
    return figure


def scatter(axes: Axes, points: Array, labels: IntArray, shown: list[int], names: tuple[str, ...]) -> list[Any]:
    handles: list[Any] = []
    rest = ~np.isin(labels, shown)
    axes.plot(*points[rest].T, ".", color="#CCCCCC", markersize=2)
    for number, label in enumerate(shown):
        colour = RUN_COLOURS[number % len(RUN_COLOURS)]
        marker = RUN_MARKERS[(number + number // len(RUN_COLOURS)) % len(RUN_MARKERS)]
        hollow = number >= len(RUN_COLOURS)
        points_of = points[labels == label]
        handles += marks(axes, points_of, colour, marker, " " + clipped(names[label], LETTERS), hollow=hollow)
    return handles


def within(axes: Axes, points: Array) -> None:
    """The same section of the plane for images and for texts."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.03 * (high - low) + 1e-6
    axes.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))


def largest_classes(labels: IntArray) -> list[int]:
    """The classes with the most items, at most 14, in their own order."""
    classes, counts = np.unique(labels, return_counts=True)
    chosen = classes[np.argsort(-counts, kind="stable")[:MOST_PLACED]]
    return sorted(chosen.tolist())
