"""Soft targets of queries: what each is to learn of its match and of the hardest others (DisNCL, figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from truepair.data.pairs import Pairs
from truepair.pages.analysis.soft_examples import SoftExample, soft_examples
from truepair.pages.analysis.subject import load_analysed, open_subject
from truepair.pages.kit.canvas import COLUMN, DPI, TRUTH, styled
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.figures.of_retrieval import show
from truepair.training.jobs import reading_of_run
from truepair.training.run_folder import RunFolder

OTHER = {"image": "text", "text": "image"}


def soft_targets(runs: Mapping[str, RunFolder], *, source: str) -> Drawn:
    """Images, then texts of the test split, each with its match, the most similar others and one at the top 10 %: the
    similarity of each, the probability of eq. 5 and the soft target, among as many pairs as one run had in a batch.

    Raises:
        InputError: the run is not of DisNCL.
    """
    (run,) = runs.values()
    pairs = load_analysed(source, "test", reading_of_run(run.path, source))
    found = soft_examples(open_subject(run.path), pairs, seed=0)
    rows = [told(query, pairs) for query in found.queries]
    about = {"candidates": found.candidates, "temperature": found.temperature, "given_weight": found.given}
    return Drawn(drawn(rows, pairs), {**about, "queries": rows})


def told(example: SoftExample, pairs: Pairs) -> dict[str, Any]:
    """A query and its candidates with what they are called, numbers to four places."""
    others = [{**named(OTHER[example.query], one.row, pairs), **rounded(asdict(one))} for one in example.candidates]
    return {"query": example.query, "row": example.row, **named(example.query, example.row, pairs), "found": others}


def named(kind: str, row: int, pairs: Pairs) -> dict[str, Any]:
    if kind == "image":
        return {"id": str(pairs.images.ids[row])}
    return {"id": str(pairs.texts.ids[row]), "caption": str(pairs.texts.captions[row])}


def rounded(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in numbers.items()}


def drawn(rows: list[dict[str, Any]], pairs: Pairs) -> Any:
    """A row a query, on the left; above each candidate what it is, its probability p and its target y."""
    from matplotlib.figure import Figure

    across = 1 + max(len(row["found"]) for row in rows)
    with styled():
        size = (COLUMN[0] * across * 0.42, COLUMN[1] * len(rows) * 0.5)
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        for cells, row in zip(figure.subplots(len(rows), across, squeeze=False), rows, strict=True):
            show(cells[0], row["query"], {**row, "place": row["row"]}, pairs, "query")
            for cell in cells:
                cell.spines[:].set_visible(False)
            for cell, one in zip(cells[1:], row["found"], strict=False):
                said = f"{one['role']}: p {one['probability']:.2f}, y {one['target']:.2f}"
                colour = TRUTH["matched"] if one["role"] == "match" else "black"
                show(cell, OTHER[row["query"]], {**one, "place": one["row"]}, pairs, said, colour)
            for cell in cells[1 + len(row["found"]) :]:
                cell.set_axis_off()
    return figure
