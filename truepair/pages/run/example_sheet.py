"""The examples as a figure: pictures with their captions, one row a part (in the manner of UGNCL's figure 3)."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from truepair.pages.kit.canvas import DPI, SOFT, TRUTH, styled
from truepair.pages.run.division import DivisionReport
from truepair.pages.run.epochs import PARTS
from truepair.pages.run.examples import PER_END, Example

TITLES = {"uncertainty": "u = {:.5f}", "belief": "belief = {:.3g}"}
ENDS = ("lowest", "highest")
CELL = (1.2, 1.85)  # inches, as the next line
LEFT, TOP, CAPTION, GAP = 0.3, 0.25, 0.6, 0.06
LINE, LINES = 23, 4  # of a caption


def example_sheet(report: DivisionReport) -> Figure | None:
    """The examples of the parts, lowest value on the left, highest on the right; None where the data has no pixels."""
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
