"""Write a division report: figures, `report.md` for people, `report.json` for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from truepair.errors import TruepairError
from truepair.files import write_bytes_atomically, write_json_atomically, write_text_atomically
from truepair.pages.run import figures
from truepair.pages.run.canvas import png_of
from truepair.pages.run.division import DivisionReport
from truepair.pages.run.epochs import PARTS
from truepair.pages.run.example_sheet import example_sheet
from truepair.pages.run.indicators import Array, Indicator
from truepair.pages.run.tables import epoch_rows, escaped, example_rows, indicator_rows, markdown

REPORT, PAGE = "report.json", "report.md"
COMPARISON = "belief_by_epoch.png"
_FIGURE_NAME = re.compile(r"(parts_by_epoch|detection_by_epoch|belief_by_epoch|indicator_\w+|examples)\.png")


def write_report(report: DivisionReport, out: Path) -> list[Path]:
    """Write the report into a folder; returns what was written, the figures first.

    Each file is written whole or not at all. Figures of an earlier report that this one has no use for are removed;
    other files are left alone.

    Raises:
        TruepairError: the folder cannot be made, or a file not written.
    """
    make_folder(out)
    before = figures_of_earlier(out)
    captions: dict[str, str] = {}
    for name, (caption, figure) in drawn(report).items():
        write_bytes_atomically(out / name, png_of(figure))
        captions[name] = caption
    write_text_atomically(out / PAGE, page(report, captions))
    write_json_atomically(out / REPORT, facts(report, list(captions)))
    for name in before - set(captions):
        (out / name).unlink(missing_ok=True)
    return [out / name for name in (*captions, PAGE, REPORT)]


def write_comparison(reports: Sequence[DivisionReport], out: Path) -> Path | None:
    """The mean beliefs of several runs in one figure (GSC, figure 5a); None where no run knows the truth."""
    figure = figures.belief_by_epoch(reports, run_labels(reports))
    if figure is None:
        return None
    make_folder(out)
    write_bytes_atomically(out / COMPARISON, png_of(figure))
    return out / COMPARISON


def run_labels(reports: Sequence[DivisionReport]) -> list[str]:
    """Runs of one method at different noise rates are called by these, others by name."""
    rates = [None if report.mismatch_rate is None else f"{100 * report.mismatch_rate:.0f} %" for report in reports]
    one_method = len({report.method for report in reports}) == 1
    if one_method and None not in rates and len(set(rates)) == len(rates):
        return [f"{rate} noise" for rate in rates]
    names = [report.name for report in reports]
    return [f"{name} ({rate} noise)" if rate else name for name, rate in zip(names, rates, strict=True)]


def make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TruepairError(f"{out} cannot be made a folder: {error.strerror}; choose another --out") from error


def figures_of_earlier(out: Path) -> set[str]:
    """The figures that the report lying in a folder names as its own."""
    try:
        names = json.loads((out / REPORT).read_text(encoding="utf-8"))["figures"]
        return {name for name in names if _FIGURE_NAME.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def drawn(report: DivisionReport) -> dict[str, tuple[str, Any]]:
    """File name → (caption, figure) of every figure there is to draw, in the order of the page."""
    candidates = {
        "parts_by_epoch": ("Sizes of the parts after each epoch.", figures.parts_by_epoch(report)),
        "detection_by_epoch": (
            "How well the division and the belief find the mismatched pairs.",
            figures.detection_by_epoch(report),
        ),
        "belief_by_epoch": (
            "Mean belief of the truly matched and of the truly mismatched pairs after each epoch.",
            figures.belief_by_epoch([report]),
        ),
    }
    for indicator in report.indicators:
        caption = f"Distribution of the {indicator.title} over the pairs, after the last epoch."
        candidates[f"indicator_{indicator.field}"] = (
            caption,
            figures.indicator_histogram(indicator, report.mismatched),
        )
    candidates["examples"] = (f"Examples of each part, by {report.ordered_by}.", example_sheet(report))
    return {f"{name}.png": (text, figure) for name, (text, figure) in candidates.items() if figure is not None}


def page(report: DivisionReport, captions: dict[str, str]) -> str:
    """`report.md`: what the run is, its tables, its figures, its examples."""
    lines = [f"# Division of {escaped(report.name)}", summary(report)]
    lines += ["## Epochs", markdown(epoch_rows(report.epochs))]
    if report.indicators:
        lines += ["## Indicators", "After the last epoch.", markdown(indicator_rows(report))]
    lines += ["## Figures", *(f"{caption}\n\n![{caption}]({name})" for name, caption in captions.items())]
    if report.examples:
        lines.append(f"## Examples: lowest and highest {report.ordered_by} of each part")
        for part in PARTS:
            chosen = [example for example in report.examples if example.part == part]
            lines += [f"### {part}", markdown(example_rows(chosen, report.ordered_by)) if chosen else "No pair."]
    return "\n\n".join(lines) + "\n"


def summary(report: DivisionReport) -> str:
    """Method, size, noise, and what is missing yet, in a line or two."""
    noise = "the truth is unknown"
    if report.mismatch_rate is not None:
        wrong = "with a wrong class label" if report.about_labels else "truly mismatched"
        noise = f"{100 * report.mismatch_rate:.1f} % of them {wrong}"
    pairs = "" if report.pairs is None else f", {report.pairs:,} pairs, {noise}"
    count = len(report.epochs)
    text = f"Method {report.method}{pairs}; {count} epoch{'s' if count > 1 else ''}."
    if report.about_labels:
        text += (
            " Such a run judges class labels: in what follows a pair is matched where its given label is right. "
            "truepair labels shows the labels themselves."
        )
    if not report.indicators:
        text += " The run is not finished: distributions and examples come with its end."
    return text


def facts(report: DivisionReport, figure_names: list[str]) -> dict[str, Any]:
    """`report.json`: everything the page shows, and the histograms behind the figures."""
    return {
        "run": report.name,
        "method": report.method,
        "finished": report.finished,
        "pairs": report.pairs,
        "mismatch_rate": report.mismatch_rate,
        "epochs": [asdict(epoch) for epoch in report.epochs],
        "indicators": [indicator_facts(indicator, report) for indicator in report.indicators],
        "examples": [
            {name: value for name, value in vars(example).items() if name != "picture"} for example in report.examples
        ],
        "figures": figure_names,
    }


def indicator_facts(indicator: Indicator, report: DivisionReport) -> dict[str, Any]:
    groups = {"all": np.ones(len(indicator.values), dtype=bool)}
    if report.mismatched is not None:
        groups |= {"matched": ~report.mismatched, "mismatched": report.mismatched}
    edges = indicator.edges
    return {
        "field": indicator.field,
        "title": indicator.title,
        "is_belief": indicator.is_belief,
        "cut": indicator.cut,
        "components": None if indicator.components is None else asdict(indicator.components),
        "auroc": None if report.mismatched is None else indicator.auroc(report.mismatched),
        "edges": edges.tolist(),
        **{name: group_facts(indicator.values[chosen], edges) for name, chosen in groups.items()},
    }


def group_facts(values: Array, edges: Array) -> dict[str, Any]:
    """Count, mean, standard deviation and histogram of a group of pairs; None for what an empty one lacks."""
    some = len(values) > 0
    return {
        "count": len(values),
        "mean": float(values.mean(dtype=np.float64)) if some else None,
        "deviation": float(values.std(dtype=np.float64)) if some else None,
        "histogram": np.histogram(values, edges)[0].tolist(),
    }
