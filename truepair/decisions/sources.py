"""Decisions from wherever they are: the folder of an audit, its database, or a file that was exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from truepair.decisions.decision import Decision, current_of
from truepair.decisions.files import FILES, FileRow, Given, read_decisions
from truepair.decisions.population import TABLE, read_columns
from truepair.decisions.store import NAME, DecisionStore
from truepair.errors import InputError
from truepair.phrases import printable


@dataclass(frozen=True)
class Decided:
    """What people decided, and of which captions.

    Attributes:
        path: where it was read from, for messages.
        history: all rows, oldest first.
        captions: pair id → the caption that was judged, of those pairs of which it is known.
        images: the same of the image.
    """

    path: Path
    history: Sequence[Decision]
    captions: Mapping[str, str]
    images: Mapping[str, str] = field(default_factory=dict)

    def current(self) -> dict[str, Decision]:
        """What is thought of every decided pair, in the order in which the pairs were chosen."""
        return current_of(self.history)

    def among(self, ids: Sequence[str], captions: Sequence[str]) -> dict[int, Decision]:
        """What is thought of the decided pairs that stand among others, by their place, in the order of `current`.

        A caption that is the given one is no correction.

        Raises:
            InputError: as `places_in`.
        """
        places = self.places_in(ids, captions)
        return {
            places[name]: without_repeated(decision, captions[places[name]])
            for name, decision in self.current().items()
            if name in places
        }

    def places_in(self, ids: Sequence[str], captions: Sequence[str]) -> dict[str, int]:
        """Where the decided pairs stand among others: pair id → place.

        Raises:
            InputError: none is there, or one has another caption there than the one that was judged.
        """
        found = {}
        current = self.current()
        for place, name in enumerate(ids):
            if name in current:
                judged = self.captions.get(name)
                if judged and judged != captions[place]:
                    raise InputError(
                        f"{self.path}: pair {name!r} was judged with the caption {_short(judged)}, but has "
                        f"{_short(captions[place])} here; give the decisions about these data"
                    )
                found[name] = place
        if current and not found:
            raise InputError(
                f"{self.path}: none of its {len(current)} decided pairs is among these, the first is "
                f"{next(iter(current))!r}; give the decisions about these data"
            )
        return found

    def check_image(self, pair_id: str, image: str, *, mismatched: bool) -> None:
        """Noise gives a pair another image under the same id and caption: a decision about the one before says nothing
        of it.

        Args:
            pair_id: of a decided pair.
            image: the one it has now.
            mismatched: noise gave it this one.

        Raises:
            InputError: another one was judged, or noise changed it and nothing says which one was.
        """
        judged = self.images.get(pair_id)
        if judged not in (image, printable(image)) if judged else mismatched:
            was = f"judged with the image {printable(judged)!r}" if judged else "mismatched by noise"
            raise InputError(
                f"{self.path}: pair {pair_id!r} was {was}, and has {printable(image)!r} here; decide about an audit of "
                "the same noise, or leave the noise or the decisions out"
            )


def load_decisions(path: Path | str) -> Decided:
    """Read decisions; nothing is changed.

    Args:
        path: folder of an audit, a database of decisions, or a file that `truepair decisions export` wrote.

    Raises:
        InputError: there are none, or they cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() in FILES and not path.is_dir():
        rows = read_decisions(path)
        captions = {row.decision.pair_id: row.given_caption for row in rows if row.given_caption}
        images = {row.decision.pair_id: row.given_image for row in rows if row.given_image}
        return Decided(path, _in_order(rows), captions, images)
    database = path / NAME if path.is_dir() else path
    with DecisionStore.open(database, read_only=True) as store:
        history = store.history()
    table = database.parent / TABLE
    given = given_of(table, {decision.pair_id for decision in history}) if table.exists() else {}
    images, captions = ({name: both[side] for name, both in given.items() if both[side]} for side in (0, 1))
    return Decided(database, history, captions, images)


def given_of(table: Path, ids: Iterable[str] | None = None) -> Given:
    """Image and caption of pairs of an audit's table, of all or of some; an InputError where it cannot be read."""
    columns = {
        name: column.to_pylist() for name, column in read_columns(table, ("pair_id", "image", "caption")).items()
    }
    wanted = None if ids is None else set(ids)
    return {
        name: (image or "", caption or "")
        for name, image, caption in zip(columns["pair_id"], columns["image"], columns["caption"], strict=True)
        if wanted is None or name in wanted
    }


def take_over(store: DecisionStore, rows: Sequence[FileRow], given: Given) -> int:
    """Merge the rows of a file into the decisions of an audit, all or none; returns how many were new.

    Args:
        given: image and caption of every pair of the audit.

    Raises:
        InputError: a row is about a pair that the audit does not have, or that has another caption there.
    """
    decisions = []
    for row in rows:
        known = given.get(row.decision.pair_id)
        if known is None:
            raise InputError(
                f"{row.place}: pair {row.decision.pair_id!r} is not in this audit; nothing was imported. Import into "
                "the audit that was reviewed, or take such rows out"
            )
        if row.given_caption and row.given_caption != known[1]:
            raise InputError(
                f"{row.place}: pair {row.decision.pair_id!r} was judged with the caption {_short(row.given_caption)}, "
                f"but has {_short(known[1])} in this audit; nothing was imported. Import into the audit that was "
                "reviewed, or take such rows out"
            )
        partner = row.decision.partner
        decisions.append(replace(row, decision=without_repeated(row.decision, known[1])))
        if partner is not None and partner not in given:
            raise InputError(
                f"{row.place}: partner {partner!r} is no pair of this audit; nothing was imported. Take such rows out"
            )
    return store.merge(_in_order(decisions))


def without_repeated(decision: Decision, given: str) -> Decision:
    """The decision without its caption where that is only the given one over again: nothing is corrected then."""
    return replace(decision, caption=None) if decision.caption == given else decision


def _in_order(rows: Sequence[FileRow]) -> list[Decision]:
    """By time; those that have none last, as the file has them."""
    return sorted((row.decision for row in rows), key=lambda decision: (decision.at is None, decision.at or ""))


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 50 else f"{shown[:47]}…'"
