"""Pairs on their way from entries of a source to `Pairs`: what is known before and after the pictures are seen."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from truepair.data.collection import Problem
from truepair.data.formats.tables.captions import printable
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.pictures.descriptions import Described
from truepair.errors import InputError

NO_LABEL = "(none)"
"""Name of the class of pairs whose label is null or empty: an audit leaves no pair out for want of a label."""


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
        self.labels.append(_label(label))

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
    name: str,
    labelled: bool,
) -> Finished:
    """The usable pairs of a draft.

    Args:
        image_names: of all the draft's images.
        place_of: the file that a pair's entry stands in and its place there, for problems.
    """
    place = np.full(len(image_names), -1, dtype=np.int64)
    place[described.rows] = np.arange(len(described.rows))
    image, rows = np.frombuffer(draft.image, dtype=np.int64), np.frombuffer(draft.row, dtype=np.int64)
    image_index = place[image] if len(draft) else image.copy()
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
    labels, class_names = _classes([draft.labels[pair] for pair in kept]) if labelled else (None, ())
    pairs = Pairs(
        images=Images(described.features, tuple(printable(image_names[row]) for row in described.rows)),
        texts=Texts(tuple(captions), tuple(ids)),
        image_index=image_index[kept],
        text_index=np.arange(len(kept), dtype=np.int64),
        labels=labels,
        class_names=class_names,
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


def _classes(labels: Sequence[str | None]) -> tuple[IntArray, tuple[str, ...]]:
    """Class numbers by the order of the names, whole numbers by size first, and those without a label last."""
    names = sorted({name for name in labels if name is not None}, key=_by_size)
    names += [NO_LABEL] if None in labels else []
    number = {name: k for k, name in enumerate(names)}
    return np.array([number[name or NO_LABEL] for name in labels], dtype=np.int64), tuple(names)


def _by_size(name: str) -> tuple[bool, int, str]:
    whole = name.isascii() and name.isdigit() and len(name) < 20
    return (not whole, int(name) if whole else 0, name)


def _label(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    return text or None
