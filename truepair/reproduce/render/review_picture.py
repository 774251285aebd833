"""The picture of the reviews: the estimate, and how well undecided pairs are ranked, after so many decisions."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from truepair.pages.kit.canvas import BLACK, BLUE, COLUMN, DPI, SOFT, legend_above, styled
from truepair.reproduce.tables import Filled

FIGURES = {"auroc": "AUROC of the others", "average_precision": "average precision of the others"}


def review_picture(shown: Filled) -> Figure:
    """Means over seeds; the band goes from the mean lower to the mean upper end of the intervals."""
    reviews = [record["reviews"] for record in shown.records]
    counts = [row["decisions"] for row in reviews[0]]

    def means(value: Callable[[dict[str, list[float]]], float]) -> list[float]:
        return [statistics.fmean(value(rows[place]) for rows in reviews) for place in range(len(counts))]

    with styled():
        figure = Figure(figsize=(COLUMN[0] * 2.2, COLUMN[1]), dpi=DPI, layout="constrained")
        estimate, *ranked = figure.subplots(1, 1 + len(FIGURES))
        share, low, high = (means(lambda row, end=end: 100 * row["estimate"][end]) for end in range(3))  # type: ignore[misc]
        estimate.fill_between(counts, low, high, color=BLUE, alpha=0.18, linewidth=0)
        estimate.plot(counts, share, color=BLUE, marker="o")
        truth = 100 * statistics.fmean(record["mismatch_rate"] for record in shown.records)
        estimate.axhline(truth, color=BLACK, linewidth=0.6)
        named(estimate, "mismatched (%)", bottom=0)
        for axes, (name, title) in zip(ranked, FIGURES.items(), strict=True):
            for step, look in ((0, {"color": SOFT, "linestyle": ":"}), (1, {"color": BLUE, "marker": "o"})):
                axes.plot(counts, means(lambda row, at=step, of=name: row[of][at]), **look)  # type: ignore[misc]
            named(axes, title)
        legend_above(
            figure,
            [
                Line2D([], [], color=BLUE, marker="o", label="with decisions, 95 % interval"),
                Line2D([], [], color=SOFT, linestyle=":", label="without"),
                Line2D([], [], color=BLACK, linewidth=0.6, label="truth"),
            ],
        )
    return figure


def named(axes: Axes, title: str, *, bottom: float | None = None) -> None:
    axes.set(xlabel="decisions", ylabel=title)
    axes.set_ylim(bottom=bottom)
    axes.grid(axis="y")
