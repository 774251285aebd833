"""The picture of the audit grid: estimated against true noise rate."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from truepair.pages.kit.canvas import BLACK, BLUE, COLUMN, DPI, ORANGE, SOFT, legend_above, styled
from truepair.reproduce.render.audit import CLEAN, ESTIMATING, KINDS, Places, figures, places_of
from truepair.reproduce.tables import Filled


def estimate_picture(audits: Filled) -> Figure:
    """Estimated against true noise rate: a panel a data set and kind of noise, the diagonal is right."""
    groups = places_of(audits)
    sets = list(dict.fromkeys(data for data, _, _ in groups))
    noisy = {(kind, data) for data, kind, _ in groups}
    drawn = [(kind, data) for kind in KINDS for data in sets if (kind, data) in noisy]
    drawn = drawn or [(next(iter(KINDS)), data) for data in sets]
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    looks: dict[str, Any] = {
        "verdict": {"color": BLUE, "marker": "o", "label": "verdict, 95 % interval"},
        "similarity": {"color": ORANGE, "marker": "s", "linestyle": "--", "label": ESTIMATING["similarity"]},
        "loss mixture": {"color": SOFT, "marker": "^", "linestyle": ":", "label": ESTIMATING["loss mixture"]},
    }
    with styled():
        figure = Figure(figsize=(COLUMN[0] * columns * 0.75, COLUMN[1] * rows), dpi=DPI, layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (kind, data) in zip(panels.flat, drawn, strict=False):
            draw_panel(axes, groups, data, kind, looks)
            axes.plot([0, 100], [0, 100], color=BLACK, linewidth=0.6, zorder=0)
        for axes in panels.flat[len(drawn) :]:
            axes.set_visible(False)
        for axes in panels.flat[max(0, len(drawn) - columns) : len(drawn)]:  # the lowest of each column
            axes.set_xlabel("true noise rate (%)")
            axes.tick_params(labelbottom=True)
        for axes in panels[:, 0]:
            axes.set_ylabel("estimated noise rate (%)")
        panels[0, 0].set(xlim=(-3, 73), ylim=(-3, 103))
        right = Line2D([], [], color=BLACK, linewidth=0.6, label="right")
        legend_above(figure, [*(Line2D([], [], **look) for look in looks.values()), right])
    return figure


def draw_panel(axes: Axes, groups: Places, data: str, kind: str, looks: dict[str, Any]) -> None:
    axes.set_title(f"{data}, {kind} noise", fontsize=8)
    axes.grid(axis="y")
    here = [records for (at, of, _), records in groups.items() if at == data and of in (CLEAN, kind)]
    truth = [100 * statistics.fmean(record["mismatch_rate"] for record in records) for records in here]
    for name, look in looks.items():
        found = [figures(records, name, "estimate") for records in here]
        drawn = [(x, 100 * statistics.fmean(values)) for x, values in zip(truth, found, strict=True) if values]
        axes.plot([x for x, _ in drawn], [y for _, y in drawn], **look)
    for x, records in zip(truth, here, strict=True):
        ends = [100 * statistics.fmean(figures(records, "verdict", f"estimate_{end}")) for end in ("low", "high")]
        axes.plot([x, x], ends, color=looks["verdict"]["color"], linewidth=1, marker="_", markersize=5)
