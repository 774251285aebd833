"""Pairs on their way from entries of a source to `Pairs`: captions as given, and what is left with their pictures."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from truepair.data.collection import Problem
from truepair.data.config import Reading
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.pictures.feature_cache import describe_all
from truepair.data.pictures.known_features import Digests
from truepair.data.pictures.pictures import Place, PlacedPictures
from truepair.encoders import encoder_of
from truepair.errors import InputError
from truepair.phrases import printable

LONGEST_CAPTION = 10_000
"""Characters of a caption that a model is given; no description of a picture is longer."""
NO_LABEL = "(none)"
"""Name of the class of pairs whose label is null or empty: no pair is left out for want of a label."""

# Characters that `str.split` takes for letters though nothing is seen of them.
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True)
class Caption:
    """A caption that was looked at.

    Attributes:
        text: words with single spaces, at most `LONGEST_CAPTION` characters; empty where there is nothing usable.
        reason, detail: as in `Problem`; empty where there is nothing to say. With text, the caption is used.
    """

    text: str
    reason: str = ""
    detail: str = ""


def read_caption(value: object) -> Caption:
    """The caption of a table's cell or a shard's member; anything but words is told, never guessed at."""
    if value is None:
        return Caption("", "caption-not-text", "the caption is null; write one, or remove the entry")
    if not isinstance(value, str):
        found = f"{type(value).__name__} {str(value)[:40]!r}"
        return Caption("", "caption-not-text", f"the caption is {found}, not text; put it in quotes if it is meant")
    text = printable(" ".join(value.split()))
    if not text.strip(_INVISIBLE + " "):
        return Caption("", "empty-caption", "the caption is empty or only spaces; write one, or remove the entry")
    if len(text) > LONGEST_CAPTION:
        detail = (
            f"the caption has {len(text):,} characters, of which the first {LONGEST_CAPTION:,} were read; check that "
            "no whole document or damaged quote stands in its place"
        )
        return Caption(text[:LONGEST_CAPTION].rstrip(), "long-caption", detail)
    return Caption(text)


class Draft:
    """Pairs as they are read, one `add` each. Row numbers are those of the entries they come from."""

    def __init__(self) -> None:
        self.image, self.row, self.number = array("q"), array("q"), array("q")
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


class Pictures(Protocol):
    """The images of a draft: their names, where they lie, (n,) 16 bytes of each that change whenever it does, and as
    many of its file, whatever its path; None where they are no files of their own.
    """

    names: list[str]

    def place(self, number: int) -> Place: ...

    def digests(self) -> Digests: ...

    def files(self) -> Digests | None: ...


@dataclass(frozen=True)
class Finished:
    """The pairs whose pictures could be described.

    Attributes:
        pairs: renumbered from 0; their source rows are the entries they come from.
        images, numbers: (N,) which of the draft's images each has, and which caption of its entry, from 0.
        problems: those met before, one for each entry whose picture failed, and the notes of the pairs that are left.
    """

    pairs: Pairs
    images: IntArray
    numbers: IntArray
    problems: list[Problem]


def finish(
    draft: Draft,
    pictures: Pictures,
    reading: Reading,
    problems: Sequence[Problem],
    *,
    source: object,
    name: str,
    place_of: Callable[[int], tuple[str, int]],
    order: Callable[[Problem], Any],
    class_names: Sequence[str] | None,
) -> Finished:
    """The usable pairs of a draft, once all its pictures are described.

    Args:
        problems: those of the entries that gave no pair.
        place_of: the file that a pair's entry stands in and its place there, for problems; these are told in `order`.
        class_names: of all splits, `NO_LABEL` not among them; None where no label was asked for.
    """
    _require_some(len(draft), source, problems)
    names = pictures.names
    encoder = encoder_of(reading.encoder)
    described = describe_all(pictures.place, pictures.digests(), encoder, reading, files=pictures.files())
    image, rows, numbers = (np.array(column, dtype=np.int64) for column in (draft.image, draft.row, draft.number))
    new_number = np.full(len(names), -1, dtype=np.int64)
    new_number[described.rows] = np.arange(len(described.rows))
    image_index = new_number[image]
    kept = np.flatnonzero(image_index >= 0)
    found = list(problems)
    for pair in np.flatnonzero(image_index < 0):
        if pair and (rows[pair - 1], image[pair - 1]) == (rows[pair], image[pair]):
            continue  # another caption of the same entry
        failure, entry = described.failures[int(image[pair])], printable(names[image[pair]])
        found.append(Problem(entry, *place_of(int(pair)), failure.reason, f"{entry}: {failure.detail}"))
    found += [note for pair, note in draft.notes if pair < len(draft) and image_index[pair] >= 0]
    found.sort(key=order)
    _require_some(len(kept), source, found)
    ids, captions = ([column[pair] for pair in kept] for column in (draft.ids, draft.captions))
    given = [draft.labels[pair] for pair in kept]
    labels, classes = (None, ()) if class_names is None else _classes(given, class_names)
    pairs = Pairs(
        images=Images(
            described.features,
            tuple(printable(names[row]) for row in described.rows),
            files=PlacedPictures(pictures.place, described.rows),
            encoder=encoder.identity(),
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
    return Finished(pairs, image[kept], numbers[kept], found)


def class_names_of(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The different labels by name, whole numbers by size first."""
    return tuple(sorted({name for name in labels if name is not None}, key=_by_size))


def label_of(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    return text or None


def _require_some(pairs: int, source: object, problems: Sequence[Problem]) -> None:
    if not pairs:
        first = "; ".join(map(str, problems[:3]))
        told = f"The first of {len(problems)} problems: {first}" if problems else "It has no entries"
        raise InputError(f"{source} holds no pair that can be used; expected pictures with captions. {told}")


def _classes(labels: Sequence[str | None], names: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Class numbers by the order of the names; last those without a label, where there are any."""
    if NO_LABEL in names:
        raise InputError(f"a class is called {NO_LABEL!r}, the name of pairs without one; give it another name")
    number = {name: k for k, name in enumerate(names)}
    names = [*names, *([NO_LABEL] if None in labels else [])]
    found = [len(number) if name is None else number[name] for name in labels]
    return np.array(found, dtype=np.int64), tuple(names)


def _by_size(name: str) -> tuple[bool, int, str]:
    digits = name.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) < 20
    return (not whole, int(name) if whole else 0, name)
