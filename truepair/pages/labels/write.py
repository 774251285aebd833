"""Write an inspection: `labels.parquet` with every pair ranked, `labels.json` for programs, the page for people."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from truepair import __version__
from truepair.files import write_bytes_atomically, write_json_atomically, write_text_atomically
from truepair.pages.kit.folder import make_folder
from truepair.pages.kit.page import clipped
from truepair.pages.labels.inspection import Inspection, Trained
from truepair.pages.labels.table import LabelTable, suspect_facts
from truepair.phrases import Rows, wrong_share_sentence

TABLE, FACTS, PAGE = "labels.parquet", "labels.json", "index.html"
SCORE = "confidence × (1 − label_belief)"
CAPTION_LETTERS = 48


def write_inspection(found: Inspection, out: Path, *, top: int) -> list[Path]:
    """Write table and facts, and the page where the data are there; returns what was written, the page first.

    Each file is written whole or not at all. A page of earlier is removed where this inspection has none.
    """
    page = None
    if found.trained is not None:
        from truepair.pages.labels.page import render_page

        page = render_page(found, top=top)
    make_folder(out)
    write_json_atomically(out / FACTS, facts_of(found, top=top))
    write_bytes_atomically(out / TABLE, ranked_table(found.table))
    if page is None:
        (out / PAGE).unlink(missing_ok=True)
        return [out / TABLE, out / FACTS]
    write_text_atomically(out / PAGE, page)
    return [out / PAGE, out / TABLE, out / FACTS]


def ranked_table(table: LabelTable) -> bytes:
    """Every pair as parquet, most suspicious first: rank from 1, suspicion, what the run holds, the proposed label."""
    import pyarrow
    from pyarrow import parquet

    order = table.order
    columns: dict[str, Any] = {
        "rank": np.arange(1, len(table) + 1),
        "suspicion": table.suspicion[order],
        "row": table.row[order],
        **{name: [getattr(table, name)[row] for row in order] for name in ("pair_id", "image", "text", "caption")},
        "given_label": named(table, table.given[order]),
        "corrected_label": named(table, table.corrected[order]),
        "changed": (table.given != table.corrected)[order],
        "label_belief": table.belief[order],
        "confidence": table.confidence[order],
    }
    if table.truth is not None:
        columns["true_label"] = named(table, table.truth[order])
        columns["wrong_label"] = (table.given != table.truth)[order]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def named(table: LabelTable, labels: Any) -> list[str]:
    return [table.classes[label] for label in labels.tolist()]


def facts_of(found: Inspection, *, top: int) -> dict[str, Any]:
    """Everything the page says, as JSON; shares and mAP in [0, 1]."""
    table = found.table
    return {
        "truepair": __version__,
        "run": found.name,
        "method": found.method,
        "pairs": len(table),
        "classes": list(table.classes),
        "record": found.record,
        "wrong_label_share": found.wrong,
        "score": SCORE,
        "suspicious": [suspect_facts(table, int(row)) for row in table.order[:top]],
        "against": found.against,
        "confusion": found.counts.tolist(),
        "mean_distribution": [None if np.isnan(row).any() else row.round(6).tolist() for row in found.heat],
        "split": found.split,
        "trained": None if found.trained is None else trained_facts(found.trained),
        "missing": found.missing or None,
    }


def trained_facts(trained: Trained) -> dict[str, Any]:
    curves, planes = trained.scores.precision_recall(), trained.planes
    return {
        "figures": trained.scores.figures(),
        "by_class": [asdict(row) for row in trained.scores.by_class()],
        "precision_recall": {name: values.round(6).tolist() for name, values in vars(curves).items()},
        "examples": {way: [asdict(answer) for answer in answers] for way, answers in trained.answers.items()},
        "planes": None
        if planes is None
        else {name: None if points is None else points.round(2).tolist() for name, points in vars(planes).items()},
    }


def suspect_rows(table: LabelTable, top: int) -> Rows:
    """Titles, then one row a pair, most suspicious first; the truth where it is known."""
    known = table.truth is not None
    rows = [["pair", "score", "given", "proposed", "belief", "confidence", *(["truth"] if known else []), "caption"]]
    for row in table.order[:top].tolist():
        facts = suspect_facts(table, row)
        kept = facts["given"] == facts["proposed"]
        rows.append(
            [
                facts["pair_id"],
                f"{facts['suspicion']:.3f}",
                facts["given"],
                "(kept)" if kept else facts["proposed"],
                f"{facts['label_belief']:.3f}",
                f"{facts['confidence']:.3f}",
                *([facts["truth"]] if known else []),
                clipped(facts["caption"], CAPTION_LETTERS),
            ]
        )
    return rows


def summary(found: Inspection) -> str:
    """What the run made of its labels, in a sentence or two."""
    record, size = found.record, len(found.table)
    text = (
        f"{found.name} ({found.method}): {size:,} labels of {len(found.table.classes)} classes, {record['changed']:,} "
    )
    text += f"changed ({100 * (record['changed'] or 0) / size:.1f} %)."
    if record["corrected_accuracy"] is not None and record["given_accuracy"] is not None:
        text += (
            f" Right: {100 * record['given_accuracy']:.1f} % as given → {100 * record['corrected_accuracy']:.1f} % "
            f"corrected; {record['repaired']:,} repaired, {record['spoiled']:,} spoiled."
        )
    if found.wrong is not None:
        text += f" {wrong_share_sentence(**found.wrong)}."
    return text
