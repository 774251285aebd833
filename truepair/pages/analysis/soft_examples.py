"""Soft targets of single queries (DisNCL, figure 5): what a query is to learn of its match and of the hardest others.

With p^i2t and p^t2i the softmax of similarity over the texts and over the images (eq. 5), an image learns towards
y^i2t_i = β3 e_i + (1 − β3) p^t2i_i: the given pair, and what the other direction thinks. So the target of image i for
text j is (1 − β3) times the probability that text i, the image's own, finds image j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import IntArray, Pairs
from truepair.losses.soft_targets import soft_targets
from truepair.pages.analysis.subject import Rows, Subject, drawn_rows, one_caption_each
from truepair.seeding import generator

QUERIES, HARDEST = 4, 3
TOP_SHARE = 0.1


class Direction(NamedTuple):
    """Similarity, probability (eq. 5) and soft target of N queries (rows) for N candidates, (N, N) each."""

    similarity: Tensor
    probability: Tensor
    target: Tensor


@dataclass(frozen=True)
class Candidate:
    """One of the N candidates of a query.

    Attributes:
        role: `match`, `hardest 1`, `hardest 2`, … (the most similar others), or `top 10 %` (the similarity that a
            tenth of the others reach).
        row: image or text row in the pairs.
        similarity: S of query and candidate.
        probability: p of eq. 5, what the model says now.
        target: y, what the loss would have it learn.
    """

    role: str
    row: int
    similarity: float
    probability: float
    target: float


@dataclass(frozen=True)
class SoftExample:
    """A query, `image` or `text` and its row in the pairs, with its match first."""

    query: str
    row: int
    candidates: list[Candidate]


@dataclass(frozen=True)
class SoftExamples:
    """Queries among N candidates, and the temperature τ and the weight β3 of the given pair that their run had."""

    candidates: int
    temperature: float
    given: float
    queries: list[SoftExample]


def soft_examples(subject: Subject, pairs: Pairs, *, seed: int) -> SoftExamples:
    """Some image queries and some text queries, drawn by chance, among as many pairs as the run had in a batch."""
    batch = int(subject.config["training"]["batch_size"])
    rows = drawn_rows(one_caption_each(pairs), batch, generator(seed, "soft target candidates"))
    temperature, given = float(subject.options["temperature"]), float(subject.options["given_weight"])
    similarity = torch.cat(list(subject.model.similarity_blocks(pairs, rows.images, rows.texts)))
    ways = directions(similarity, temperature=temperature, given=given)
    queries = generator(seed, "soft target queries").permutation(len(rows))[: 2 * QUERIES]
    halves = {"image": queries[: len(queries) // 2], "text": queries[len(queries) // 2 :]}
    found = [example(query, int(place), ways[query], rows) for query, places in halves.items() for place in places]
    return SoftExamples(len(rows), temperature, given, found)


def directions(similarity: Tensor, *, temperature: float, given: float) -> dict[str, Direction]:
    """Both directions, by what is queried with.

    Args:
        similarity: (N, N), row = image, column = text, given pairs on the diagonal.
        temperature: τ > 0.
        given: β3 in [0, 1].
    """
    to_text, to_image = torch.softmax(similarity / temperature, dim=1), torch.softmax(similarity.T / temperature, dim=1)
    return {
        "image": Direction(similarity, to_text, soft_targets(given, to_image)),
        "text": Direction(similarity.T, to_image, soft_targets(given, to_text)),
    }


def example(query: str, place: int, way: Direction, rows: Rows) -> SoftExample:
    """The match, the hardest others and the other at the top 10 %, for the query at `place` of the N."""
    queries, candidates = (rows.images, rows.texts) if query == "image" else (rows.texts, rows.images)
    shown = [
        Candidate(role, int(candidates[other]), *(float(values[place, other]) for values in way))
        for role, other in roles(way.similarity[place], place)
    ]
    return SoftExample(query, int(queries[place]), shown)


def roles(similarity: Tensor, match: int) -> list[tuple[str, int]]:
    """Which candidates are shown of a query's similarities, (N,), and as what; no one twice."""
    order: IntArray = np.argsort(-similarity.numpy(), kind="stable")
    others = order[order != match]
    chosen: list[tuple[str, Any]] = [("match", match)]
    chosen += [(f"hardest {number}", other) for number, other in enumerate(others[:HARDEST], start=1)]
    tenth = round(TOP_SHARE * len(others)) - 1
    if tenth >= HARDEST:
        chosen.append(("top 10 %", others[tenth]))
    return [(role, int(other)) for role, other in chosen]
