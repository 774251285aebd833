"""Figures drawn from the records of tables: over noise rates, epochs, values of an option and K; beliefs by epoch."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from truepair.errors import InputError
from truepair.pages.kit.canvas import (
    COLUMN,
    DASHES,
    DPI,
    EPOCH,
    RUN_COLOURS,
    RUN_MARKERS,
    SOFT,
    TRUTH,
    empty_figure,
    legend_above,
    styled,
)
from truepair.reproduce.cells import Record
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.records import figure_of

RECALLS = (1, 5, 10)
Curve = list[tuple[float, float, float]]
"""(where, mean over seeds, standard deviation; 0 of one seed), ascending."""


def against_noise(records: Sequence[Record], titles: Mapping[str, str], *, figure: str, axis: str) -> Drawn:
    """A curve a row: a figure of the records over the noise rate in percent."""
    points = [(name_of(record), 100 * record["cell"]["noise"], figure_of(record, figure)) for record in records]
    return curves(points, titles, "noise rate (%)", axis)


def by_epoch(records: Sequence[Record], titles: Mapping[str, str], *, figures: Mapping[str, str], axis: str) -> Drawn:
    """A curve a row and figure: what was kept of every epoch.

    Args:
        figures: key of an epoch → what the legend adds to the title of the row, "" for nothing.

    Raises:
        InputError: records of several data sets or noise rates, whose mean would be none; or no record holds the
            figures by epoch: those of older versions do not.
    """
    settings = sorted({(record["cell"]["data"], record["cell"]["noise"]) for record in records})
    if len(settings) > 1:
        listed = ", ".join(f"{data} at {noise:.0%}" for data, noise in settings)
        raise InputError(f"curves by epoch are of one data set and noise rate, found {listed}; name one in `where`")
    points = []
    for record in records:
        for epoch in record.get("epochs", ()):
            for key, said in figures.items():
                points.append((f"{name_of(record)} {said}".strip(), float(epoch["epoch"]), epoch.get(key)))
    words = [(row, title, said) for row, title in titles.items() for said in figures.values()]
    named = {f"{row} {said}".strip(): f"{title} {said}".strip() for row, title, said in words}
    return curves(points, named, EPOCH, axis)


def sweep(
    records: Sequence[Record], titles: Mapping[str, str], *, option: str, figure: str, axis: str, scale: str = "linear"
) -> Drawn:
    """A curve a noise rate: a figure over the values of one option of the method, whatever the rows are called.

    Args:
        scale: of the values, `linear` or `log`.
    """
    points = []
    for record in records:
        value = record["options"]["method"]["options"][option]
        points.append((f"{record['cell']['noise']:.0%} noise", float(value), figure_of(record, figure)))
    drawn = curves(points, {name: name for name, _, _ in points}, option.replace("_", " "), axis)
    drawn.figure.axes[0].set_xscale(scale)
    return drawn


def recalls(records: Sequence[Record], titles: Mapping[str, str], *, direction: str, axis: str) -> Drawn:
    """A bar a row for each of R@1, R@5 and R@10 on the test split, with one standard deviation over seeds.

    Args:
        direction: `i2t`, from image to text, or `t2i`.
    """
    drawn: dict[str, dict[str, tuple[float, float]]] = {}
    for row, title in titles.items():
        of_row = [record for record in records if name_of(record) == row]
        for k in RECALLS if of_row else ():
            values = [figure_of(record, f"result.test.{direction}_r{k}") for record in of_row]
            _, mean, spread = curve_of({0.0: [value for value in values if value is not None]})[0]
            drawn.setdefault(title, {})[f"R@{k}"] = (mean, spread)
    handles, width = [], 0.8 / len(drawn)
    with styled():
        figure, axes = empty_figure("", axis)
        for number, (title, bars) in enumerate(drawn.items()):
            where = np.arange(len(RECALLS)) + (number - (len(drawn) - 1) / 2) * width
            heights, spreads = np.array([*bars.values()]).T
            colour = RUN_COLOURS[number % len(RUN_COLOURS)]
            handles.append(axes.bar(where, heights, width, yerr=spreads, color=colour, ecolor=SOFT, label=title))
        axes.set_xticks(np.arange(len(RECALLS)), [f"R@{k}" for k in RECALLS])
        legend_above(figure, handles)
    return Drawn(figure, {"vertical": axis, "bars": drawn})


def beliefs_by_epoch(records: Sequence[Record], titles: Mapping[str, str], *, columns: int, axis: str) -> Drawn:
    """How the beliefs of matched and of mismatched pairs are distributed by epoch: a row a row, seeds summed.

    Args:
        columns: epochs shown, at equal distances up to the last one.

    Raises:
        InputError: no record holds the distribution; those of older versions do not.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    found: dict[str, dict[int, dict[str, Any]]] = {}
    for record in records:
        last = record["epochs"][-1]["epoch"]
        wanted = {-(-last * k // columns) for k in range(1, columns + 1)}
        for epoch in record["epochs"]:
            if epoch["epoch"] in wanted and "belief_matched" in epoch:
                here = found.setdefault(titles[name_of(record)], {}).setdefault(epoch["epoch"], {})
                for truth in TRUTH:
                    here[truth] = np.add(here.get(truth, 0), epoch[f"belief_{truth}"])
    if not found:
        raise InputError("no record holds how beliefs are distributed by epoch; run its table anew")
    with styled():
        size = (COLUMN[0] * columns * 0.6, COLUMN[1] * len(found) * 0.8)
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        panels = figure.subplots(len(found), columns, sharex=True, sharey="row", squeeze=False)
        for row, (title, by_epoch) in enumerate(found.items()):
            for axes, (epoch, counts) in zip(panels[row], sorted(by_epoch.items()), strict=False):
                for truth, values in counts.items():
                    shares = 100 * values / max(values.sum(), 1)
                    axes.stairs(shares, np.linspace(0, 1, len(shares) + 1), color=TRUTH[truth], linestyle=DASHES[truth])
                axes.set(title=f"epoch {epoch}", xlabel=axis)
            panels[row, 0].set_ylabel(f"{textwrap.fill(title, 30)}\nshare of pairs (%)", fontsize=7)
        looks = [Line2D([], [], color=TRUTH[truth], linestyle=DASHES[truth], label=f"{truth} pairs") for truth in TRUTH]
        legend_above(figure, looks)
    counted = {
        title: {
            str(epoch): {truth: values.tolist() for truth, values in counts.items()} for epoch, counts in rows.items()
        }
        for title, rows in found.items()
    }
    return Drawn(figure, {"bins": "20 equal ones of [0, 1]", "counts": counted})


def name_of(record: Record) -> str:
    return str(record["cell"]["method"])


def curves(
    points: Iterable[tuple[str, float, float | None]], titles: Mapping[str, str], horizontal: str, vertical: str
) -> Drawn:
    """A curve a name, with a band of one standard deviation over seeds.

    Raises:
        InputError: there is no value to draw.
    """
    found: dict[str, dict[float, list[float]]] = {}
    for name, where, value in points:
        if value is not None:
            found.setdefault(name, {}).setdefault(where, []).append(value)
    if not found:
        raise InputError(f"no record holds what this figure shows ({vertical}); run its table anew")
    drawn: dict[str, Curve] = {name: curve_of(found[name]) for name in titles if name in found}
    handles: list[Any] = []
    with styled():
        figure, axes = empty_figure(horizontal, vertical)
        for number, (name, curve) in enumerate(drawn.items()):
            colour, marker = (these[number % len(these)] for these in (RUN_COLOURS, RUN_MARKERS))
            where, mean, spread = np.array(curve).T
            handles += axes.plot(where, mean, color=colour, marker=marker, label=titles[name])
            axes.fill_between(where, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        legend_above(figure, handles)
    shown = {titles[name]: curve for name, curve in drawn.items()}
    return Drawn(figure, {"horizontal": horizontal, "vertical": vertical, "curves": shown})


def curve_of(values: Mapping[float, Sequence[float]]) -> Curve:
    return [
        (where, statistics.fmean(here), statistics.stdev(here) if len(here) > 1 else 0.0)
        for where, here in sorted(values.items())
    ]
