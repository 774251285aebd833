"""The tables of a division report, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from truepair.pages.run.division import DivisionReport
from truepair.pages.run.epochs import PARTS, Epoch
from truepair.phrases import Rows


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
