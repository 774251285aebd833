"""Pairs on their way from entries of a source to `Pairs`: what is known before and after the pictures are seen."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from truepair.data.collection import Problem
from truepair.data.formats.tables.captions import printable
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.pictures.feature_cache import Described
from truepair.data.pictures.pictures import Place, PlacedPictures
from truepair.errors import InputError

NO_LABEL = "(none)"
"""Name of the class of pairs whose label is null or empty: no pair is left out for want of a label."""


class Draft:
    """Pairs as they are read, one `add` each. Row numbers are those of the entries they come from."""

    def __init__(self) -> None:
        self.image = array("q")
        self.row = array("q")
        self.number = array("q")
        self.captions: list[str] = []
        self.ids: list[str] = []
        self.labels: list[str | None] = []
        self.notes: list[tuple[int, Problem]] = []
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self.captions)

    def add(self, *, image: int, caption: str, name: str, again: str, row: int, number: int, label: object) -> None:
        """One more pair: caption `number` of entry `row`, with image `image`.

        Its id is `name`; where another pair has that already, `again` is appended, as often as it takes.
        """
        while name in self._taken:
            name += again
        self._taken.add(name)
        self.image.append(image)
        self.row.append(row)
        self.number.append(number)
        self.captions.append(caption)
        self.ids.append(name)
        self.labels.append(label_of(label))

    def note(self, problem: Problem) -> None:
        """A remark about the pair added next; it is dropped where that pair is."""
        self.notes.append((len(self), problem))


@dataclass(frozen=True)
class Finished:
    """The pairs whose pictures could be described.

    Attributes:
        pairs: renumbered from 0; their source rows are the entries they come from.
        kept: (N,) which of the draft's pairs they are, ascending.
        images: (k,) which of the draft's images are left.
        problems: one for each entry whose picture failed, and the notes of the pairs that are left.
    """

    pairs: Pairs
    kept: IntArray
    images: IntArray
    problems: list[Problem]


def finish(
    draft: Draft,
    described: Described,
    image_names: Sequence[str],
    place_of: Callable[[int], tuple[str, int]],
    *,
    place: Callable[[int], Place],
    name: str,
    class_names: Sequence[str] | None,
) -> Finished:
    """The usable pairs of a draft.

    Args:
        image_names: of all the draft's images.
        place: where the picture of each of them lies.
        class_names: of all splits, `NO_LABEL` not among them; None where no label was asked for.
        place_of: the file that a pair's entry stands in and its place there, for problems.
    """
    number = np.full(len(image_names), -1, dtype=np.int64)
    number[described.rows] = np.arange(len(described.rows))
    image, rows = np.frombuffer(draft.image, dtype=np.int64), np.frombuffer(draft.row, dtype=np.int64)
    image_index = number[image] if len(draft) else image.copy()
    kept = np.flatnonzero(image_index >= 0)
    problems = []
    for pair in np.flatnonzero(image_index < 0):
        if pair and (rows[pair - 1], image[pair - 1]) == (rows[pair], image[pair]):
            continue  # another caption of the same entry
        failure, entry = described.failures[int(image[pair])], printable(image_names[image[pair]])
        problems.append(Problem(entry, *place_of(int(pair)), failure.reason, f"{entry}: {failure.detail}"))
    problems += [note for pair, note in draft.notes if pair < len(draft) and image_index[pair] >= 0]
    ids = draft.ids if len(kept) == len(draft) else [draft.ids[pair] for pair in kept]
    captions = draft.captions if len(kept) == len(draft) else [draft.captions[pair] for pair in kept]
    given = [draft.labels[pair] for pair in kept]
    labels, classes = (None, ()) if class_names is None else _classes(given, class_names)
    pairs = Pairs(
        images=Images(
            described.features,
            tuple(printable(image_names[row]) for row in described.rows),
            files=PlacedPictures(place, described.rows),
        ),
        texts=Texts(tuple(captions), tuple(ids)),
        image_index=image_index[kept],
        text_index=np.arange(len(kept), dtype=np.int64),
        labels=labels,
        class_names=classes,
        name=name,
        source_rows=rows[kept],
        pair_ids=ids,
    )
    return Finished(pairs, kept, described.rows, problems)


def require_some(pairs: int, source: object, problems: Sequence[Problem]) -> None:
    """Refuse a source of which nothing is left.

    Raises:
        InputError: no pairs; tells the first problems.
    """
    if pairs:
        return
    first = "; ".join(f"{problem.file}, {problem.row}: {problem.detail}" for problem in problems[:3])
    told = f"The first of {len(problems)} problems: {first}" if problems else "It has no entries"
    raise InputError(f"{source} holds no pair that can be used; expected pictures with captions. {told}")


def class_names_of(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The different labels by name, whole numbers by size first."""
    return tuple(sorted({name for name in labels if name is not None}, key=_by_size))


def _classes(labels: Sequence[str | None], names: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Class numbers by the order of the names; last those without a label, where there are any."""
    names = [*names, *([NO_LABEL] if None in labels else [])]
    number = {name: k for k, name in enumerate(names)}
    return np.array([number[name or NO_LABEL] for name in labels], dtype=np.int64), tuple(names)


def _by_size(name: str) -> tuple[bool, int, str]:
    digits = name.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) < 20
    return (not whole, int(name) if whole else 0, name)


def label_of(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    return text or None
