"""From an analysis to one HTML page that needs nothing else."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from truepair.evaluation.mutual_information import FEWEST_SAMPLES
from truepair.pages.analysis.analyse import Analysis, RunAnalysis
from truepair.pages.analysis.embedding import NEIGHBOURS, scatter
from truepair.pages.analysis.leakage import COMPONENTS, ESTIMATES
from truepair.pages.analysis.probes import PARTS
from truepair.pages.kit.canvas import png_of
from truepair.pages.kit.page import data_source, render
from truepair.pages.kit.pictures import Album


def render_page(analysis: Analysis) -> str:
    """The page of an analysis, light or dark as the reader's system is."""
    pairs = analysis.pairs
    return render(
        "analysis/page.html",
        **vars(analysis),
        command=command_of(analysis),
        runs=analysis.runs,
        named=named,
        images=len(pairs.images),
        texts=len(pairs.texts),
        differing=differing(analysis),
        left=None if analysis.against is None else shares_left(analysis.run, analysis.against),
        estimates=ESTIMATES,
        components=COMPONENTS,
        neighbours=NEIGHBOURS,
        fewest=FEWEST_SAMPLES,
        scatters=[data_source(png_of(scatter(run.embedding))) for run in analysis.runs],
        pictures=pairs.images.have_pixels,
        picture_of=Album(pairs).picture,
        caption_of=pairs.texts.captions.__getitem__,
        probes=[table for run in analysis.runs for table in probe_tables(run)],
    )


def command_of(analysis: Analysis) -> str:
    """What was typed, with every option that decides a number."""
    parts = ["truepair", "analyse", analysis.run.name]
    if analysis.against is not None:
        parts += ["--against", analysis.against.name]
    parts += ["--data", analysis.source, "--split", analysis.split]
    if analysis.leakage_split != analysis.split:
        parts += ["--leakage-split", analysis.leakage_split]
    return shlex.join([*parts, "--seed", str(analysis.seed)])


def differing(analysis: Analysis) -> list[tuple[str, tuple[Any, Any]]]:
    """Options of the method in which the two runs differ, with the value of each."""
    if analysis.against is None:
        return []
    one, other = analysis.run.options, analysis.against.options
    return [
        (name, (one.get(name), other.get(name))) for name in sorted({*one, *other}) if one.get(name) != other.get(name)
    ]


def shares_left(run: RunAnalysis, against: RunAnalysis) -> dict[str, dict[str, float | None]]:
    """Estimate → side → the run's estimate as a share of the other's; None where that is 0 or there is none."""
    found: dict[str, dict[str, float | None]] = {"mine": {}, "jensen_shannon": {}}
    for measure, sides in found.items():
        for side in ("image", "text"):
            values = [
                None if one.leakage is None else float(getattr(one.leakage[side], measure).mean)
                for one in (run, against)
            ]
            sides[side] = values[0] / values[1] if values[0] is not None and values[1] else None
    return found


def probe_tables(run: RunAnalysis) -> list[dict[str, Any]]:
    """The probes of a run: of its parts as they are, and with noise."""
    tables = [probe_table(run)]
    noisy = (run.probes or {}).get("with_noise")
    if noisy is not None:
        name = f"{run.name}, parts with noise of {noisy['noise']:g} times their spread"
        tables.append(probe_table(replace(run, name=name, probes={**(run.probes or {}), **noisy})))
    return [table for table in tables if table is not None]


def probe_table(run: RunAnalysis) -> dict[str, Any] | None:
    """The probes of a run with a row a factor and a column a part; None where there are none."""
    if run.probes is None or not run.probes.get("rows"):
        return None
    rows = run.probes["rows"]
    parts = [part for part in PARTS if any(row["part"] == part for row in rows)]
    factors: dict[tuple[str, str, float], dict[str, float]] = {}
    for row in rows:
        factors.setdefault((row["factor"], row["belongs"], row["chance"]), {})[row["part"]] = row["accuracy"]
    return {
        "name": run.name,
        "summary": run.probes.get("summary") or {},
        "fitted_on": run.probes.get("fitted_on"),
        "scored_on": run.probes.get("scored_on"),
        "parts": parts,
        "rows": [
            {"factor": factor, "belongs": belongs, "accuracies": [found.get(part) for part in parts], "chance": chance}
            for (factor, belongs, chance), found in factors.items()
        ],
    }


def named(text: str) -> Markup:
    """A text with the names of parts, such as V_S, set as on the rest of the page."""
    return Markup(re.sub(r"\b([VT])_([SX])\b", r"<i>\1</i><sub>\2</sub>", str(escape(text))))
