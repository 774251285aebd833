"""What is served: finished runs and audits, each with the table of its pairs and the data that these come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.pairs import IntArray, Pairs
from truepair.decisions.population import digest_of_pairs
from truepair.errors import InputError
from truepair.serve.errors import Problem
from truepair.serve.pictures import Pictures
from truepair.serve.table import PairTable

if TYPE_CHECKING:
    from truepair.serve.search import Searcher
    from truepair.training.fit import Run


@dataclass
class Source:
    """A run or an audit that is served.

    Attributes:
        name: what requests know it by: letters, digits, points, dashes.
        kind: "run" or "audit".
        path: its folder.
        table: its pairs.
        pairs: the data they come from; None where these are not at hand.
        places: (N,) the row of `pairs` of every pair of the table, −1 where the data have it no more.
        pictures: of `pairs`; None without data.
        notices: what the people who use it should know, in sentences.
        run: where there is a model to search with.
        searcher: finds its images and captions; None where nothing here makes vectors of them.
        reads_words: whether it searches for any words, not for items of the data alone.
        why_not: why there is none, and what to do.
    """

    name: str
    kind: str
    path: Path
    table: PairTable
    pairs: Pairs | None
    places: IntArray
    pictures: Pictures | None
    notices: list[str] = field(default_factory=list)
    run: Run | None = None
    searcher: Searcher | None = None
    reads_words: bool = True
    why_not: str = "there is nothing to search with"

    def searcher_or_refuse(self) -> Searcher:
        """What searches this source. Raises Problem: it has no vectors to search by, with the remedy."""
        if self.searcher is None:
            raise Problem(409, "no-vectors", f"{self.name} cannot be searched: {self.why_not}")
        return self.searcher

    @cached_property
    def digest(self) -> str:
        """Of ids, images and captions of the table, as decisions keep it (`truepair.decisions.population`)."""
        return digest_of_pairs(self.table.columns)

    @cached_property
    def image_numbers(self) -> IntArray:
        """(N,) the image of every pair of the table, −1 where the data have the pair no more."""
        if self.pairs is None:
            return np.full(len(self.table), -1, dtype=np.int64)
        return np.where(self.places >= 0, self.pairs.image_index[self.places], -1)

    def picture_address(self, image: int) -> str | None:
        """Where the picture of an image is had, without a width; None where there is none."""
        if image < 0 or self.pictures is None or not self.pictures.any:
            return None
        return f"/pictures/{self.name}/{image}"

    def said(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The captions of some pairs, and what is believed of these, as JSON has them."""
        wanted = [name for name in ("pair_id", "caption", "p_match") if name in self.table]
        found: list[dict[str, Any]] = (
            self.table.columns.select(wanted).take(np.asarray(rows, dtype=np.int64)).to_pylist()
        )
        facets = {name: self.table.facets.get(name) for name in ("verdict", "label")}
        for row, values in zip(rows, found, strict=True):
            values["p_match"] = _finite(values.get("p_match"))
            values |= {name: None if facet is None else facet.value(row) for name, facet in facets.items()}
        return found

    def told(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Some pairs of the table as JSON has them."""
        table = self.table
        wanted = [name for name in _TOLD if name in table]
        taken = table.columns.select(wanted).take(np.asarray(rows, dtype=np.int64)).to_pylist()
        found = []
        for row, values in zip(rows, taken, strict=True):
            image = int(self.image_numbers[row])
            facets = {name: facet.value(row) for name, facet in table.facets.items()}
            proposed = values.get("proposed_caption_pair")
            found.append(
                {
                    "pair_id": values["pair_id"],
                    "row": values["row"],
                    "image": values["image"],
                    "image_number": image if image >= 0 else None,
                    "picture": self.picture_address(image),
                    "caption": values["caption"],
                    "p_match": _finite(values.get("p_match")),
                    "similarity": _finite(values.get("similarity")),
                    "label": facets.get("label"),
                    "verdict": facets.get("verdict"),
                    "origin": facets.get("origin"),
                    "division": facets.get("division"),
                    "reason": values.get("reason") or None,
                    "duplicates": values.get("duplicate_kind") or None,
                    "proposed": [
                        {
                            "caption": values["proposed_caption"],
                            "pair_id": proposed,
                            "fit": _finite(values.get("proposed_caption_fit")),
                        }
                    ]
                    if proposed
                    else [],
                }
            )
        return found


_TOLD = (
    *("pair_id", "row", "image", "caption", "p_match", "similarity", "reason", "duplicate_kind"),
    *("proposed_caption", "proposed_caption_pair", "proposed_caption_fit"),
)


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


def named(paths: Sequence[Path]) -> list[str]:
    """A name for each folder that addresses can hold: the end of its path, with a number where others have the same.

    Raises:
        InputError: a folder is given twice.
    """
    places = [path.resolve() for path in paths]
    names: list[str] = []
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise InputError(f"{path} is given twice; name each run and audit once")
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", place.name).strip("-.")[:60] or "source"
        taken, number = name, 1
        while taken in names:
            number += 1
            taken = f"{name}-{number}"
        names.append(taken)
    return names


def joined_places(table: Any, pairs: Pairs) -> IntArray:
    """(N,) the row of `pairs` that has the id of every row of an arrow table, −1 where none has."""
    import pyarrow
    from pyarrow import compute

    known = pyarrow.array(pairs.ids())
    found = compute.fill_null(compute.index_in(table["pair_id"], known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def label_column(pairs: Pairs | None, places: IntArray) -> Any:
    """The classes of the pairs of a table as an arrow column; None where they have none."""
    import pyarrow

    if pairs is None or pairs.labels is None:
        return None
    codes = np.where(places >= 0, pairs.labels[places], len(pairs.class_names))
    names = pyarrow.array([*pairs.class_names, ""])
    return names.take(pyarrow.array(codes))
