"""A page of each method (`docs/methods/NAME.md`): what its paper prints, where the defaults differ, and what that
changes; and the page that lists them (`docs/methods.md`).
"""

from __future__ import annotations

import inspect
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import truepair
from truepair.methods import METHODS, build_method, learns_from_labels
from truepair.methods.preset import Preset
from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of, finished_and_diverged
from truepair.reproduce.render.markdown import OLDER
from truepair.reproduce.revisions import outdated
from truepair.reproduce.tables import Filled
from truepair.training.as_printed import AsPrinted, Departure, as_printed

LIST = """\
# The methods

One page per method. `truepair.as_printed("gsc")`, or `--as-printed` on the command line, applies every setting that the
paper prints, in one go. The page lists where our default differs, why, and what the printed value changes; what the
paper leaves open, so that our default stands; and what it has that "as printed" leaves out or reads otherwise: what no
option expresses, and misprints. It also links equations to the lines that compute them, and says how to run the rows of
the paper's tables and its figures (names of tables and figures are those of `python -m truepair.reproduce`; figures
measured so far are in [results.md](results.md)).

Every loss is tested against plain loops of its equations, and where authors have released code, against what that
returns on the same matrices (`tests/losses/test_released_values.py` and the file beside it). DisNCL, UOT-RCL and
ELR-CMR have released none that could be found.

Made from the presets beside the methods and from records (`python -m truepair.reproduce report`); a test says whether
they are current.

| method | source | engines of the paper | defaults that differ |
|---|---|---|---|
"""
GROUPS = {"training.optimizer": "optimizer", "training.weight_decay": "optimizer", "augmentation": "augmentation"}
"""Departures that are measured together: an option, or all of a part."""
MEASURED = {
    "result.test.rsum": ("test rSum, `fashion_precomp`, 40 % of the captions shuffled", 1, 0.4),
    "result.test.map": ("test mAP, `wikipedia`, 80 % of the labels wrong, where all parts of UOT-RCL act", 3, 0.8),
}
"""Figure → what it is, its digits, and the noise rate."""
WHOLE = {
    "result.test.rsum": "all of these but the engine, whose default stays",
    "result.test.map": "all of these",
}
"""The same → what runs as printed, of which the row is METHOD-as-printed, have of the paper."""


def method_pages(shown: Filled, printed: Iterable[Record] = ()) -> Mapping[str, str]:
    """The text of every page, by its path below `docs/`.

    Args:
        shown: the table of the departures.
        printed: records of runs as printed as a whole; those at the noise rate of the figure count.
    """
    rows: dict[str, list[Record]] = defaultdict(list)
    whole = (
        record
        for record in printed
        if record["cell"]["noise"] == rate_of(record["cell"]["method"].removesuffix("-as-printed"))
    )
    for record in (*shown.records, *shown.diverged, *whole):
        rows[record["cell"]["method"]].append(record)
    pages = {f"methods/{name}.md": page(name, rows) for name in METHODS}
    return {"methods.md": LIST + "".join(f"{line}\n" for line in map(listed, METHODS)), **pages}


def rate_of(name: str) -> float:
    """The noise rate at which the method's figures are shown."""
    *_, rate = MEASURED["result.test.map" if learns_from_labels(name) else "result.test.rsum"]
    return rate


def listed(name: str) -> str:
    """The method's line of the list."""
    link = f"[`{name}`](methods/{name}.md)"
    if METHODS[name].method.printed is None:
        return f"| {link} | our own: [the method](truepair-method.md) | | |"
    printed = as_printed(name)
    return f"| {link} | {printed.preset.source} | {', '.join(printed.preset.models)} | {len(printed.departures)} |"


def page(name: str, rows: Mapping[str, list[Record]]) -> str:
    """The page of one method."""
    if METHODS[name].method.printed is None:
        own = "Our own: [the method](../truepair-method.md), [its results](../results/truepair.md)."
        return "\n".join([f"# `{name}`", "", own, "", kept(name), ""])
    printed = as_printed(name)
    preset = printed.preset
    lines = [f"# `{name}`", "", f"Source: {preset.source}.", f"Engines: {', '.join(preset.models)}.", ""]
    lines += departures(printed, rows)
    for title, entries in (
        (
            "Equation → line",
            [f"- {what}: {linked(at)}" for what, at in preset.equations.items()],
        ),
        ("Tables and figures", [f"- {row}: {how}" for row, how in preset.rows.items()]),
        ("For other data", for_other_data(preset)),
        ("Not said by the paper", [f"- {entry}" for entry in preset.silent]),
        ("In the paper, but no option here", [f"- {entry}" for entry in preset.not_expressed]),
    ):
        lines += ["", f"**{title}**", "", *entries] if entries else []
    return "\n".join([*lines, "", kept(name), ""])


def departures(printed: AsPrinted, rows: Mapping[str, list[Record]]) -> Iterator[str]:
    """The defaults that differ, each with its reason and, where it was measured, what the printed one changes."""
    base, _ = finished_and_diverged(rows.get(printed.name, []))
    figure = next((name for name in MEASURED if base and figure_of(base[0], name) is not None), None)
    if figure is not None:
        what, *_ = MEASURED[figure]
        yield f"Last column: {what}. One default at a time is replaced by the printed value (where others change with"
        yield "it, they are named); the change is against the same command without it (mean over seeds ± standard"
        yield "deviation; `python -m truepair.reproduce run departures`). A dash: not run alone. That command, of one"
        yield f"seed: `{base[0]['command']}`."
        yield ""
    yield "| option | as printed | default | reason for the default | change by the printed value |"
    yield "|---|---|---|---|---|"
    changes = []
    for each in printed.departures:
        option = "--model" if each.option == "model" else f"`{each.option}`"
        changes.append("–" if figure is None else changed(printed.name, each, rows, figure))
        yield f"| {option} | {value(each.printed)} | {value(each.default)} | {each.reason} | {changes[-1]} |"
    if figure is not None:
        changes.append(changed(printed.name, Departure("method.as_printed", "", "", ""), rows, figure))
        yield f"| {WHOLE[figure]} | | | | {changes[-1]} |"
    if any(OLDER in change for change in changes):
        yield ""
        yield f"{OLDER} of a run of an earlier revision of the method, which came to other figures, or against one."


def row_of(name: str, option: str) -> str:
    """The row of the table `departures` that has an option of a method as printed."""
    part, _, word = option.partition(".")
    return f"{name}-{GROUPS.get(option, GROUPS.get(part, word)).replace('_', '-')}"


def changed(name: str, each: Departure, rows: Mapping[str, list[Record]], figure: str) -> str:
    """The paired difference over the seeds that both have; – where none was run; and where runs stop."""
    row = row_of(name, each.option)
    base, _ = finished_and_diverged(rows.get(name, []))
    runs, diverged = finished_and_diverged(rows.get(row, []))
    when = " or ".join(map(str, sorted({record["diverged"]["epoch"] for record in diverged})))
    found, against = (
        {record["cell"]["seed"]: figure_of(record, figure) for record in records} for records in (runs, base)
    )
    differences = [found[seed] - against[seed] for seed in sorted(found.keys() & against.keys())]  # type: ignore[operator]
    if not differences:
        return f"diverges in epoch {when}" if diverged else "–"
    digits = MEASURED[figure][1]
    beside = with_it(each.option, runs[0], base[0]) + (OLDER if outdated([*runs, *base]) else "")
    if diverged:
        verb = "diverges" if len(diverged) == 1 else "diverge"
        beside += f"; {len(diverged)} of {len(diverged) + len(runs)} runs {verb} in epoch {when}"
    mean = f"{statistics.fmean(differences):+.{digits}f}".replace("-", "−")
    if len(differences) == 1:
        return f"{mean} (one seed){beside}"
    return f"{mean} ± {statistics.stdev(differences):.{digits}f}{beside}"


def with_it(option: str, run: Record, base: Record) -> str:
    """What else a run changes beside an option: `, with augmentation.word_share`."""
    settings, before = (settings_of(record) for record in (run, base))
    others = [name for name in settings.keys() & before.keys() if settings[name] != before[name] and name != option]
    return "".join(f", with `{name}`" for name in sorted(others)) if option in settings else ""


def settings_of(record: Record) -> dict[str, Any]:
    """All options of a run by the names of departures, but for its seed."""
    parts: dict[str, Any] = dict(record.get("options", {}))
    found = {"method": parts.get("method", {}).get("options", {})}
    found |= {part: parts.get(part, {}) for part in ("augmentation", "training")}
    every = {f"{part}.{name}": value for part, options in found.items() for name, value in options.items()}
    return {name: value for name, value in every.items() if name != "training.seed"}


def linked(place: str) -> str:
    """A function by its name, with a link to its line: `module:Class.method`."""
    module, _, name = place.partition(":")
    home = import_module(f"truepair.{module}")
    function = attrgetter(name)(home)
    source = Path(inspect.getsourcefile(inspect.unwrap(function)) or "").relative_to(Path(truepair.__file__).parents[1])
    line = inspect.getsourcelines(inspect.unwrap(function))[1]
    return f"[`truepair.{module}.{name}`](../../{source.as_posix()}#L{line})"


def for_other_data(preset: Preset) -> list[str]:
    return [
        f"- `--printed-for {data}`: "
        + ", ".join(f"{option} {value(chosen)}" for part in change.values() for option, chosen in part.items())
        for data, change in preset.for_data.items()
    ]


def value(option: Any) -> str:
    if hasattr(option, "gives_vectors"):
        return f"{option.name}: " + ", ".join(f"{key} {item}" for key, item in asdict(option).items())
    return "from other settings" if option is None else f"{option:g}" if isinstance(option, float) else str(option)


def kept(name: str) -> str:
    """What the method keeps of every pair: the columns `memory_…` of a run's table, and what has no column."""
    import torch

    from truepair.correspondence import CorrespondenceMemory
    from truepair.correspondence.memory import GivenClasses

    method, memory = build_method(name), CorrespondenceMemory(2, GivenClasses(torch.tensor([0, 1]), 2))
    method.prepare(memory)
    columns: list[str] = []
    others: list[str] = []
    for field, values in memory.tensors().items():
        known = f" ({method.fields[field].name})" if field in method.fields else ""
        (columns if values.ndim == 1 else others).append(
            f"`memory_{field}`{known}" if values.ndim == 1 else f"`{field}`{known}"
        )
    told = f"Kept of every pair: {', '.join(columns) or 'no column of its own'}."
    return told if not others else f"{told} Of every class, in checkpoints alone: {', '.join(others)}."
