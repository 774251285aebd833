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
    sets, measured = list(dict.fromkeys(data for data, _, _ in groups)), {kind for _, kind, _ in groups}
    kinds = [kind for kind in KINDS if kind in measured] or [next(iter(KINDS))]
    looks: dict[str, Any] = {
        "verdict": {"color": BLUE, "marker": "o", "label": "verdict, 95 % interval"},
        "similarity": {"color": ORANGE, "marker": "s", "linestyle": "--", "label": ESTIMATING["similarity"]},
        "loss mixture": {"color": SOFT, "marker": "^", "linestyle": ":", "label": ESTIMATING["loss mixture"]},
    }
    with styled():
        figure = Figure(figsize=(COLUMN[0] * len(sets) * 0.75, COLUMN[1] * len(kinds)), dpi=DPI, layout="constrained")
        panels = figure.subplots(len(kinds), len(sets), sharex=True, sharey=True, squeeze=False)
        for i, kind in enumerate(kinds):
            for k, data in enumerate(sets):
                draw_panel(panels[i, k], groups, data, kind, looks)
                panels[i, k].plot([0, 100], [0, 100], color=BLACK, linewidth=0.6, zorder=0)
            panels[i, 0].set_ylabel("estimated noise rate (%)")
        for axes in panels[-1]:
            axes.set_xlabel("true noise rate (%)")
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
