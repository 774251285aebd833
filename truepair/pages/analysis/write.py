"""Write an analysis: the page for people, `analysis.json` for programs, a table for the terminal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from truepair import __version__
from truepair.evaluation.retrieval import TABLE_FIGURES
from truepair.files import write_json_atomically, write_text_atomically
from truepair.pages.analysis.analyse import Analysis, RunAnalysis
from truepair.pages.analysis.leakage import COMPONENTS, ESTIMATES
from truepair.pages.analysis.page import render_page, shares_left
from truepair.pages.analysis.probes import PARTS
from truepair.pages.analysis.retrieval import Figures
from truepair.pages.kit.folder import make_folder
from truepair.phrases import Rows

PAGE, FACTS = "index.html", "analysis.json"


def write_analysis(analysis: Analysis, out: Path) -> tuple[Path, Path]:
    """Write page and `analysis.json` into a folder, each whole or not at all; returns their paths."""
    page, facts = render_page(analysis), facts_of(analysis)
    make_folder(out)
    write_text_atomically(out / PAGE, page)
    write_json_atomically(out / FACTS, facts)
    return out / PAGE, out / FACTS


def facts_of(analysis: Analysis) -> dict[str, Any]:
    """Everything the page says, as JSON: nats, per cent for recall, shares in [0, 1] for the rest."""
    left = None if analysis.against is None else shares_left(analysis.run, analysis.against)
    return {
        "truepair": __version__,
        "source": analysis.source,
        "split": analysis.split,
        "images": len(analysis.pairs.images),
        "texts": len(analysis.pairs.texts),
        "leakage_split": analysis.leakage_split,
        "components": COMPONENTS,
        "estimates": ESTIMATES,
        "fitted_pairs": analysis.fitted_pairs,
        "fitted_images": analysis.fitted_images,
        "seed": analysis.seed,
        "chance": analysis.chance,
        "run": run_facts(analysis.run),
        "against": None if analysis.against is None else run_facts(analysis.against),
        "left": left,
        "soft_targets": asdict(analysis.soft),
    }


def run_facts(run: RunAnalysis) -> dict[str, Any]:
    return {
        "name": run.name,
        "method_options": run.options,
        "leakage": None if run.leakage is None else {side: asdict(found) for side, found in run.leakage.items()},
        "explained": run.explained,
        "retrieval": run.retrieval,
        "neighbours": run.embedding.neighbours,
        "plane": {part: points.round(2).tolist() for part, points in run.embedding.points.items()},
        "probes": run.probes,
    }


def leakage_rows(analysis: Analysis) -> Rows:
    """Titles, then one row a measure and side: the run, the other, the share that is left."""
    rows = [["", *(run.name for run in analysis.runs), *(["left"] if analysis.against else [])]]
    left = None if analysis.against is None else shares_left(analysis.run, analysis.against)
    if analysis.run.leakage is not None:
        for measure, title, digits in (("mine", "I({}; {}) MINE", 2), ("jensen_shannon", "JS({}; {})", 3)):
            for side, found in analysis.run.leakage.items():
                cells = [
                    f"{getattr(run.leakage[side], measure).mean:.{digits}f}" for run in analysis.runs if run.leakage
                ]
                share = [] if left is None else [percent(left[measure][side])]
                rows.append([title.format(*found.parts), *cells, *share])
        for side, found in analysis.run.leakage.items():
            values = [f"{run.leakage[side].without_noise:.3f}" for run in analysis.runs if run.leakage]
            rows.append(["JS({}; {}), no noise".format(*found.parts), *values, *([""] if left else [])])
    for side, title in (("image", "R² of V_S by V_X"), ("text", "R² of T_S by T_X")):
        rows.append([title, *(f"{run.explained[side]:.3f}" for run in analysis.runs), *([""] if left else [])])
    return rows


def recall_rows(run: RunAnalysis, chance: Figures) -> Rows:
    """Titles, then one row a comparison, and chance."""
    rows = [[run.name, "i→t R@1", "R@5", "R@10", "t→i R@1", "R@5", "R@10", "rSum"]]
    rows += [[name, *recalls(figures)] for name, figures in run.retrieval.items()]
    return [*rows, ["chance", *recalls(chance)]]


def probe_rows(run: RunAnalysis) -> Rows:
    """Titles, then one row a group of factors: (accuracy − chance)/(1 − chance) of probes of each part; none if empty.

    Of the parts with noise first, then of the parts as they are.
    """
    if run.probes is None:
        return []
    noisy = run.probes.get("with_noise")
    states = [(f"with noise of {noisy['noise']:g}", noisy)] if noisy else []
    rows = [[f"{run.name}: read from", *PARTS]]
    for state, probes in (*states, ("as they are", run.probes)):
        for group, gains in probes["summary"].items():
            rows.append([f"{group}, {state}", *(f"{gains[part]:.2f}" for part in PARTS)])
    return rows


def recalls(figures: Figures) -> list[str]:
    return [f"{figures[name]:.1f}" for name in TABLE_FIGURES]


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
