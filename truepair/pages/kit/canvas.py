"""What all figures drawn as pictures share: size, colours, axes, legend, PNG. Colour is never the only difference."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLUMN = (3.5, 2.6)  # inches
DPI = 200
EPOCH = "epoch"  # the title of an axis of epochs
LETTERS = 56  # of the legend's size that fit into the width of a column
SIGN = 6  # of them go to the sign before the words

# Okabe and Ito's colours, told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
Dashes = Any  # matplotlib takes a name or (offset, lengths)
TRUTH = {"matched": BLUE, "mismatched": VERMILION}
DASHES: dict[str, Dashes] = {"matched": "solid", "mismatched": (0, (4, 1.5))}
PART_COLOURS = {"clean": GREEN, "hard": YELLOW, "noisy": PURPLE}
RUN_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
RUN_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SOFT = "#666666"

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 3.5,
}


@contextmanager
def styled() -> Iterator[None]:
    with matplotlib.rc_context(_STYLE):
        yield


def empty_figure(horizontal: str, vertical: str) -> tuple[Figure, Axes]:
    """Axes with these titles; epochs are whole numbers."""
    figure = Figure(figsize=COLUMN, dpi=DPI, layout="constrained")
    axes = figure.subplots()
    if horizontal == EPOCH:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel=horizontal, ylabel=vertical)
    axes.grid(axis="y")
    return figure, axes


def marks(axes: Axes, points: Any, colour: str, marker: str, label: str, *, hollow: bool) -> list[Any]:
    """Items in a plane, (n, 2), one small mark each; returns what a legend takes."""
    look: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0.6, "markerfacecolor": "none" if hollow else colour}
    return axes.plot(*points.T, marker, color=colour, label=label, **look)


def legend_above(figure: Figure, handles: Sequence[Any]) -> None:
    """Over the axes, where it hides nothing, in as few rows as its words allow."""
    labels = [shortened(str(handle.get_label())) for handle in handles]
    widths = [len(label) + SIGN for label in labels]
    rows = next(rows for rows in range(1, len(widths) + 1) if fits(widths, rows) or rows == len(widths))
    columns = -(-len(widths) // rows)
    legend = figure.legend(
        handles=list(handles),
        labels=labels,
        loc="outside upper center",
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.0,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a run's name may hold a dollar sign


def shortened(label: str) -> str:
    """A label that fits into one row; of the long name of a run both ends tell most."""
    room = LETTERS - SIGN
    label = label if len(label) <= room else f"{label[: room // 2 - 1]}…{label[-room // 2 :]}"
    return f" {label}" if label.startswith("_") else label  # matplotlib hides those that begin with an underscore


def fits(widths: Sequence[int], rows: int) -> bool:
    """Whether entries of these widths, filled in column by column, stay within the figure."""
    return sum(max(widths[start : start + rows]) for start in range(0, len(widths), rows)) <= LETTERS


def png_of(figure: Figure) -> bytes:
    """The figure as PNG; the same bytes for the same figure."""
    buffer = io.BytesIO()
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # captions in any script; the tables have them
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
