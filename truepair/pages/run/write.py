"""Write a division report: a page for people, its tables and figures, `report.json` for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Array
from truepair.files import write_bytes_atomically, write_json_atomically, write_text_atomically
from truepair.pages.kit.canvas import png_of
from truepair.pages.kit.folder import held_in, make_folder, refuse
from truepair.pages.kit.page import data_source, render
from truepair.pages.run import figures
from truepair.pages.run.division import DivisionReport
from truepair.pages.run.epochs import PARTS, Epoch
from truepair.pages.run.indicators import Indicator
from truepair.phrases import Rows, percent_span

REPORT, PAGE = "report.json", "report.html"
COMPARISON = "belief_by_epoch.png"
FIGURES = ("parts_by_epoch.png", "detection_by_epoch.png", COMPARISON, "indicator_*.png", "examples.png")
OWN = (REPORT, PAGE, "report.md", *FIGURES)  # the page was report.md once


def write_report(report: DivisionReport, out: Path) -> list[Path]:
    """Write the report into a folder; returns what was written, the figures first.

    Each file is written whole or not at all. Figures of an earlier report that this one has no use for are removed;
    other files are left alone.

    Raises:
        TruepairError: the folder cannot be made, or a file not written.
    """
    make_folder(out)
    before = figures_of_earlier(out)
    pictures = {name: (caption, png_of(figure)) for name, (caption, figure) in drawn(report).items()}
    for name, (_, png) in pictures.items():
        write_bytes_atomically(out / name, png)
    write_text_atomically(out / PAGE, page(report, pictures))
    write_json_atomically(out / REPORT, facts(report, list(pictures)))
    for name in before - set(pictures):
        (out / name).unlink(missing_ok=True)
    return [out / name for name in (*pictures, PAGE, REPORT)]


def check_reports(out: Path, names: Sequence[str]) -> None:
    """Refuse a folder for the reports of several runs that holds anything but such."""
    for name in sorted(held_in(out) - {COMPARISON, *names}):
        if not (out / name / REPORT).is_file():
            refuse(out, name)


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


def figures_of_earlier(out: Path) -> set[str]:
    """The figures that the report lying in a folder names as its own."""
    try:
        names = json.loads((out / REPORT).read_text(encoding="utf-8"))["figures"]
        return {name for name in names if any(fnmatchcase(name, pattern) for pattern in FIGURES) and "/" not in name}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def drawn(report: DivisionReport) -> dict[str, tuple[str, Any]]:
    """File name → (caption, figure) of every figure there is to draw, in the order of the page."""
    detection = "How well the division and the belief find the mismatched pairs."
    belief = "Mean belief of the truly matched and of the truly mismatched pairs after each epoch."
    candidates: dict[str, tuple[str, Any]] = {
        "parts_by_epoch": ("Sizes of the parts after each epoch.", figures.parts_by_epoch(report)),
        "detection_by_epoch": (detection, figures.detection_by_epoch(report)),
        "belief_by_epoch": (belief, figures.belief_by_epoch([report])),
    }
    for indicator in report.indicators:
        caption = f"Distribution of the {indicator.title} over the pairs, after the last epoch."
        histogram = figures.indicator_histogram(indicator, report.mismatched)
        candidates[f"indicator_{indicator.field}"] = (caption, histogram)
    candidates["examples"] = (f"Examples of each part, by {report.ordered_by}.", figures.example_sheet(report))
    return {f"{name}.png": (text, figure) for name, (text, figure) in candidates.items() if figure is not None}


def page(report: DivisionReport, pictures: dict[str, tuple[str, bytes]]) -> str:
    """What the run is, its tables, its figures (name → caption and PNG), its examples."""
    return render(
        "run/page.html",
        report=report,
        summary=summary(report),
        epochs=epoch_rows(report.epochs),
        indicators=indicator_rows(report) if report.indicators else None,
        pictures=[(name, caption, data_source(png)) for name, (caption, png) in pictures.items()],
        examples={part: example_rows(report, part) for part in PARTS},
    )


def summary(report: DivisionReport) -> str:
    """Method, size, noise, and what is missing yet, in a line or two."""
    noise = "the truth is unknown"
    if report.mismatch_rate is not None:
        wrong = "with a wrong class label" if report.about_labels else "truly mismatched"
        noise = f"{100 * report.mismatch_rate:.1f} % of them {wrong}"
    pairs = "" if report.pairs is None else f", {report.pairs:,} pairs, {noise}"
    count = len(report.epochs)
    text = f"Method {report.method}{pairs}; {count} epoch{'s' if count > 1 else ''}."
    if report.estimate is not None:
        span = percent_span(report.estimate.low, report.estimate.high)
        text += (
            f" By the estimate of {report.estimated_by}, {percent(report.estimate.share)} of the pairs are mismatched "
            f"(95 % interval {span})."
        )
    if report.about_labels:
        text += (
            " Such a run corrects class labels: in what follows a pair is matched where its given label is right. "
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
        "mismatch_share": None if report.estimate is None else asdict(report.estimate),
        "mismatch_share_by": None if report.estimate is None else report.estimated_by,
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


def epoch_rows(epochs: Sequence[Epoch]) -> Rows:
    """Titles, then one row an epoch; columns of which nothing is known are left out."""
    columns: list[tuple[str, str, Callable[[Any], str]]] = [("epoch", "epoch", str)]
    for part in PARTS:
        columns += [(part, part, "{:,}".format), ("matched", f"{part}_matched", percent)]
    columns += [("division accuracy", "division_accuracy", percent), ("AUROC", "auroc", "{:.3f}".format)]
    columns += [
        ("belief if matched", "belief_matched_mean", "{:.4f}".format),
        ("if mismatched", "belief_mismatched_mean", "{:.4f}".format),
    ]
    known = [column for column in columns if any(getattr(epoch, column[1]) is not None for epoch in epochs)]
    rows = [[title for title, _, _ in known]]
    for epoch in epochs:
        values = [(getattr(epoch, name), text) for _, name, text in known]
        rows.append(["–" if value is None else text(value) for value, text in values])
    return rows


def indicator_rows(report: DivisionReport) -> Rows:
    """Titles, then one row an indicator: its mean over matched and mismatched pairs, and how well it parts them."""
    if report.mismatched is None:
        rows = [["indicator", "mean", "lowest", "highest"]]
        for indicator in report.indicators:
            values = indicator.values
            rows.append([indicator.title, *(f"{value:.4g}" for value in (values.mean(), values.min(), values.max()))])
        return rows
    rows = [["indicator", "mean if matched", "mean if mismatched", "AUROC"]]
    for indicator in report.indicators:
        groups = (indicator.values[~report.mismatched], indicator.values[report.mismatched])
        auroc = indicator.auroc(report.mismatched)
        means = [f"{group.mean():.4g}" if len(group) else "–" for group in groups]
        rows.append([indicator.title, *means, "–" if auroc is None else f"{auroc:.3f}"])
    return rows


def example_rows(report: DivisionReport, part: str) -> Rows | None:
    """Titles, then one row an example of a part; None without any."""
    known = report.mismatched is not None
    rows = [["", report.ordered_by, *(["truth"] if known else []), "pair", "image", "caption"]]
    for example in report.examples:
        if example.part == part:
            truth = ["mismatched" if example.mismatched else "matched"] if known else []
            rows.append([example.end, f"{example.value:.5f}", *truth, example.pair_id, example.image, example.caption])
    return rows if len(rows) > 1 else None


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
