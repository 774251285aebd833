"""Soft targets of queries: what each is to learn of its match and of the hardest others (DisNCL, figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truepair.data.pairs import Pairs
from truepair.pages.analysis.soft_examples import SoftExample, soft_examples
from truepair.pages.analysis.subject import load_analysed, open_subject
from truepair.pages.kit.canvas import TRUTH
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.figures.of_retrieval import OTHER, Look, draw_cells
from truepair.training.jobs import reading_of_run
from truepair.training.run_folder import RunFolder


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
    return Drawn(draw_cells(rows, pairs, lambda row: "query", look), {**about, "queries": rows})


def told(example: SoftExample, pairs: Pairs) -> dict[str, Any]:
    """A query and its candidates with what they are called, numbers to four places."""
    found = [
        {**named(OTHER[example.query], one.row, pairs), "role": one.role}
        | {name: round(getattr(one, name), 4) for name in ("similarity", "probability", "target")}
        for one in example.candidates
    ]
    return {"kind": example.query, **named(example.query, example.row, pairs), "found": found}


def named(kind: str, place: int, pairs: Pairs) -> dict[str, Any]:
    """An image or a text by its place: what it is called, and what a text says."""
    if kind == "image":
        return {"id": str(pairs.images.ids[place]), "place": place}
    return {"id": str(pairs.texts.ids[place]), "place": place, "caption": str(pairs.texts.captions[place])}


def look(one: Mapping[str, Any]) -> Look:
    """What a candidate is, its probability p and its target y."""
    said = f"{one['role']}: p {one['probability']:.2f}, y {one['target']:.2f}"
    return Look(said, TRUTH["matched"] if one["role"] == "match" else "black")
