"""The review of one audit: its decisions as they stand, what comes next, and what follows from them so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.pairs import IntArray
from truepair.decisions.agreement import Agreement, agreement_with
from truepair.decisions.decision import Decision, Undone, checked, current_of
from truepair.decisions.estimate import NoiseEstimate, noise_estimate
from truepair.decisions.order import ReviewOrder
from truepair.decisions.population import TABLE, Population
from truepair.decisions.store import NAME, DecisionStore
from truepair.errors import InputError
from truepair.serve.errors import Problem, not_found
from truepair.serve.replaced import file_at, state_at
from truepair.serve.table import Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truepair.serve.sources import Source

PROPOSED = 5
"""Captions that are proposed for a picture."""
_ORDERS_KEPT = 16


@dataclass(frozen=True)
class Progress:
    """How far a review is.

    Attributes:
        latest: row of the history that was written last; 0 before the first.
        people: name → pairs that have a verdict of theirs.
    """

    latest: int
    pairs: int
    people: dict[str, int]
    agreement: Agreement
    estimate: NoiseEstimate


class Review:
    """What people decide about the pairs of an audit; several threads ask at once.

    The database is the truth, and other processes may write to it: every answer begins with the rows that are new. The
    folder may be removed, and another audit made in its place: nothing is answered or kept then.
    """

    def __init__(self, source: Source) -> None:
        if source.kind != "audit":
            raise Problem(
                409,
                "no-audit",
                f"{source.name} is a run; only audits are reviewed: truepair audit makes one of its data",
            )
        self.source, self.path = source, source.path / NAME
        self._lock = RLock()
        self._store: DecisionStore | None = None
        self._store_file: tuple[int, int] | None = None
        self._population: Population | None = None
        self._table_state: tuple[int, ...] | None = None
        self._history: list[Decision] = []
        self._latest = 0
        self._current: tuple[int, dict[str, Decision]] = (0, {})
        self._progress: Progress | None = None
        self._orders: OrderedDict[Any, tuple[ReviewOrder, IntArray | None]] = OrderedDict()

    @property
    def population(self) -> Population:
        """The pairs as the audit believed in them.

        Raises:
            InputError: its table is damaged.
            Problem: another audit stands in the folder by now; the service has to be started again.
        """
        with self._lock:
            state = state_at(self.source.path / TABLE)
            if state is None:
                raise self._changed("is no longer in its folder")
            if state != self._table_state:
                self._population = self._read_table()
                self._orders.clear()
                self._progress, self._table_state = None, state
            if self._population is None:
                raise self._changed("was audited anew meanwhile")
            return self._population

    def _read_table(self) -> Population | None:
        """The pairs as the table has them now; None where they are not those that were opened."""
        try:
            found = Population.of_audit(self.source.path)
        except InputError as error:
            if self._table_state is None:
                raise
            raise self._changed("has another table of pairs by now, which cannot be read") from error
        return found if found.digest == self.source.digest else None

    def _check(self) -> None:
        """Raises as `population`, and where the database that is open is not the one in the folder."""
        _ = self.population
        if self._store is not None and file_at(self.path) != self._store_file:
            raise self._changed("has its decisions no longer where they were")

    def _changed(self, how: str) -> Problem:
        return Problem(409, "audit-changed", f"{self.source.name} {how}; nothing was kept. Start the service again")

    def require(self, audit: str | None) -> None:
        """Raises Problem where decisions are about the pairs of another audit than this one; None does not ask."""
        if audit is not None and audit != self.source.digest:
            raise Problem(
                409,
                "other-audit",
                f"these decisions are about another audit than the one that is served as {self.source.name} now; "
                "nothing was changed. Serve that one again, or reload the page to review this one",
            )

    def prepare(self) -> None:
        """Read what the first answer needs, ahead of it."""
        with self._lock:
            _ = self.population.rows, self._by_image, self.source.table.facets
            self.coming("worst", 1)
            for person in list(dict.fromkeys(each.person for each in self.history()))[-_ORDERS_KEPT // 2 :]:
                self._order("gain", person, Wanted())
            self.told([0])
            self.progress()

    def record(self, decisions: Sequence[Decision], requests: Sequence[str]) -> list[int]:
        """Keep decisions, all or none; they are on the disk when this returns. Rows of the history.

        Raises:
            InputError: a value cannot be kept, or a pair is not one of the audit's.
            Problem: 507, nothing could be written: the disk is full, or the folder cannot be written to; 409, the
                folder holds another audit by now.
        """
        self._check()
        rows = self.population.rows
        for decision in decisions:
            checked(decision)
            for name in (decision.pair_id, decision.partner):
                if name is not None and name not in rows:
                    raise not_found("pair", name, f"{self.source.name} does not have it; nothing was recorded")
        with self._writing() as store:
            return store.record_all(decisions, requests)

    def undo(self, person: str, requests: Sequence[str]) -> list[Decision]:
        """Take back the last decisions of a person, one a request; what was taken back, the last one first."""
        with self._writing() as store:
            taken = [store.undo(person, request) for request in requests]
        return [decision for decision in taken if decision is not None]

    def undo_named(self, person: str, names: Sequence[str], request: str) -> list[Undone]:
        """Take back the very decisions of a person that were recorded by these requests; see `DecisionStore`."""
        with self._writing() as store:
            return store.undo_named(person, names, request)

    def history(self) -> Sequence[Decision]:
        """All rows, oldest first. Raises Problem as `population`."""
        with self._lock, self._kept():
            self._check()
            if self._store is None and self.path.exists():
                self._writable()
            new = [] if self._store is None else self._store.history(after=self._latest)
            if new:
                joined = not self._history or (self._history[-1].at or "") < (new[0].at or "")
                self._history.extend(new)
                if not joined:  # an import brought older ones
                    self._history.sort(key=lambda decision: (decision.at or "", decision.number or 0))
                self._latest = max(decision.number or 0 for decision in new)
            return self._history

    @property
    def latest(self) -> int:
        """Number of the row that was written last."""
        self.history()
        return self._latest

    def current(self, person: str | None = None) -> dict[str, Decision]:
        """What is thought of every decided pair, of all people or of one."""
        with self._lock:
            latest, history = self.latest, self._history
            if person is not None:
                return current_of(history, person)
            if self._current[0] != latest:
                self._current = latest, current_of(history)
            return self._current[1]

    def coming(
        self,
        by: str,
        n: int,
        *,
        person: str = "",
        wanted: Wanted | None = None,
        skip: Sequence[int] = (),
        again: bool = False,
    ) -> tuple[list[tuple[int, float | None]], int]:
        """The next pairs, and how many are left in this order.

        Args:
            skip: rows that are on a screen already.
            again: those that others decided as well, for a second opinion: such pairs are not drawn for the estimate.

        Raises:
            InputError: the order is unknown, or asks for other pairs than the table has.
        """
        with self._lock:
            decided = self.current(person if again else None)
            order, among = self._order(by, person, wanted or Wanted())
            names = self.population.ids
            aside = {*decided, *(names[row] for row in skip if row < len(names))}
            found = order.next(n, aside)
            rows = self.population.rows
            if among is None:
                left = len(names) - len(decided)
            else:
                left = len(among) - int(np.isin([rows[name] for name in decided], among).sum())
        return [(row, None if again else probability) for row, probability in found], left

    def _order(self, by: str, person: str, wanted: Wanted) -> tuple[ReviewOrder, IntArray | None]:
        if by != "facet" and not wanted.everything:
            raise InputError(f"order {by!r} is of all pairs; ask for some of them with order facet")
        chosen = tuple(sorted((name, *values) for name, values in wanted.facets.items() if values))
        key = (by, person if by == "gain" else "", chosen, wanted.words, wanted.p_low, wanted.p_high)
        if key not in self._orders:
            among = self.source.table.rows(wanted) if by == "facet" else None
            self._orders[key] = ReviewOrder(self.population, by, rows=among, person=person), among
            if len(self._orders) > _ORDERS_KEPT:
                self._orders.popitem(last=False)
        self._orders.move_to_end(key)
        return self._orders[key]

    def progress(self) -> Progress:
        """How far it is; worked out anew when something was decided."""
        with self._lock:
            current, latest = self.current(), self._latest
            if self._progress is None or self._progress.latest != latest:
                people = dict.fromkeys((decision.person for decision in self._history), 0)
                self._progress = Progress(
                    latest,
                    len(self.population),
                    {name: len(current_of(self._history, name)) for name in people},
                    agreement_with(self.population, current.values()),
                    noise_estimate(self.population, current.values()),
                )
            return self._progress

    def told(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Some pairs as `Source.told`, with up to five captions proposed: the audit's, then those that other pairs have
        of the same picture, the most probable first.
        """
        pairs = self.source.told(rows)
        others = [self._others(row) for row in rows]
        words = iter(self.source.told([other for some in others for other in some]))
        for pair, some in zip(pairs, others, strict=True):
            known = {pair["caption"], *(proposal["caption"] for proposal in pair["proposed"])}
            for _ in some:
                other = next(words)
                if other["caption"] not in known and len(pair["proposed"]) < PROPOSED:
                    known.add(other["caption"])
                    pair["proposed"].append({"caption": other["caption"], "pair_id": other["pair_id"], "fit": None})
        return pairs

    @cached_property
    def _by_image(self) -> tuple[IntArray, IntArray]:
        """Rows in the order of their images, and these."""
        images = self.source.image_numbers
        order = np.argsort(images, kind="stable").astype(np.int64)
        return order, images[order]

    def _others(self, row: int) -> list[int]:
        """Other pairs of the picture that are taken as matched."""
        image = self.source.image_numbers[row]
        if image < 0:
            return []
        order, images = self._by_image
        begin, end = np.searchsorted(images, [image, image + 1])
        rows = order[begin:end]
        p = self.population.p_match[rows]
        best = np.argsort(-p, kind="stable")
        return [int(rows[place]) for place in best if p[place] >= 0.5 and rows[place] != row][: 2 * PROPOSED]

    @contextmanager
    def _writing(self) -> Iterator[DecisionStore]:
        """The database; when the block has ended without an error, what it wrote stands in the folder of this audit."""
        with self._kept():
            self._check()
            yield self._writable()
            self._check()

    def _writable(self) -> DecisionStore:
        with self._lock:
            if self._store is None:
                self._store = DecisionStore.open(self.path, audit=self.population.digest)
                self._store_file = file_at(self.path)
            return self._store

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """What the database refuses, without where it lies."""
        try:
            yield
        except Problem:
            raise
        except InputError as error:
            said = str(error).replace(str(self.path), f"{NAME} of {self.source.name}")
            raise Problem(507, "not-kept", said) from error
