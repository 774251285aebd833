"""Decisions on disk: a SQLite database beside the audit, for several tabs, processes and people at once.

What `record` has returned from is on the disk (write-ahead log, synchronous = FULL): neither a kill nor a power cut
takes it back. Nothing is ever overwritten: the latest row of a person about a pair is what the person thinks, and an
undo is a row as well.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from truepair.decisions.decision import CLOCK, Decision, Left, Undone, checked, current_of
from truepair.decisions.schema import STEPS, check_version, prepare
from truepair.errors import InputError
from truepair.files import require_file

NAME = "decisions.sqlite"
"""Name of the database in the folder of an audit."""

_PATIENCE = 15.0  # seconds that a writer waits for the others
_COLUMNS = tuple(field.name for field in fields(Decision))
_ALL = ", ".join(_COLUMNS)
_FULL = ("full", "disk i/o error", "too large")
_STANDING = "undoes IS NULL AND NOT EXISTS (SELECT 1 FROM decisions AS u WHERE u.undoes = d.number)"
_LAST = "ORDER BY at DESC, number DESC LIMIT 1"


class DecisionStore:
    """The decisions about the pairs of one audit; its methods may be called from several threads."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
        self.path, self.read_only = path, read_only
        self._connection, self._lock = connection, threading.RLock()

    @classmethod
    def open(cls, path: Path | str, read_only: bool = False, *, audit: str | None = None) -> DecisionStore:
        """Open a database of decisions; one that is not there is made, one of an older version is brought to this one
        and its copy kept beside it (`decisions.version1.sqlite`).

        Args:
            path: the file; its folder must exist.
            read_only: change nothing, make nothing; an older version is refused then.
            audit: digest of the audit that the decisions are about (`truepair.decisions.population`). It is kept with
                them; those of another audit are refused. None does not ask.

        Raises:
            InputError: the file is no database of decisions, damaged, of a newer version or another audit; or it
                cannot be opened, or the disk is full.
        """
        path = Path(path)
        with _refused(path):
            connection = _connected(path, read_only)
            try:
                if read_only:
                    _require_version(connection, path)
                else:
                    check_version(connection, path)  # before the log is switched on: that writes
                    _log_ahead(connection)
                    prepare(connection, path)
                store = cls(connection, path, read_only=read_only)
                if audit is not None:
                    store._check_audit(audit)
            except BaseException:
                connection.close()
                raise
        return store

    def record(self, decision: Decision) -> int:
        """Keep a decision; when this returns, it is on the disk. Returns its row in the history.

        Raises:
            InputError: a value cannot be kept, or the disk is full, or others write without end; nothing is lost then.
        """
        return self.record_all([decision])[0]

    def record_all(self, decisions: Sequence[Decision], requests: Sequence[str] | None = None) -> list[int]:
        """Keep several decisions, all or none of them; otherwise as `record`.

        Args:
            requests: a name for each, unique for ever. What was kept under a name is not kept again, so that who got
                no answer may ask again; its row is returned.
        """
        wanted = [checked(decision) for decision in decisions]
        names: Sequence[str | None] = [None] * len(wanted) if requests is None else requests
        with self._writing():
            return [
                self._insert_once(replace(each, undoes=None), name) for each, name in zip(wanted, names, strict=True)
            ]

    def undo(self, person: str, request: str | None = None) -> Decision | None:
        """Take back the last decision of a person that was not taken back yet: what the person thought of the pair
        before it counts again. Returns the decision that was taken back, None where there is none.

        Args:
            request: a name, as of `record_all`.
        """
        with self._writing():
            done = self._row_of_request(request)
            if done is not None:
                taken_back = "SELECT undoes FROM decisions WHERE number = ?"
                return self._one(f"SELECT {_ALL} FROM decisions WHERE number = ({taken_back})", (done,))
            last = self._one(f"SELECT {_ALL} FROM decisions AS d WHERE person = ? AND {_STANDING} {_LAST}", (person,))
            if last is not None:
                self._take_back(last, request)
            return last

    def undo_named(self, person: str, names: Sequence[str], request: str) -> list[Undone]:
        """Take back the very decisions of a person that were kept under these names (`record_all`), in one step, the
        last one first. One that the person decided anew since stays, and what was taken back already is left alone.

        Args:
            names: each once.
            request: a name, as of `record_all`: asked again, the same decisions count as taken back.
        """
        with self._writing():
            found = {name: self._named(name, person) for name in names}
            known = [(decision, name) for name, decision in found.items() if decision is not None]
            known.sort(key=lambda each: (each[0].at or "", each[0].number or 0), reverse=True)
            undone = [Undone(name, each, self._take_back_unchanged(each, f"{request}/{name}")) for each, name in known]
            return [*undone, *(Undone(name, None, "unknown") for name in names if found[name] is None)]

    def current(self, person: str | None = None) -> dict[str, Decision]:
        """What is thought of every decided pair: pair_id → decision, in the order in which the pairs were first chosen.

        `chosen_by` and `probability_chosen` are those of that first choice. Of several people the majority counts, a
        tie is "unsure"; `person` gives one alone.
        """
        return current_of(self.history(), person)

    def history(self, pair_id: str | None = None, *, after: int = 0) -> list[Decision]:
        """Every row ever written, oldest first; of one pair or of all, with a number above `after`."""
        where, given = (
            ("WHERE number > ?", (after,))
            if pair_id is None
            else ("WHERE pair_id = ? AND number > ?", (pair_id, after))
        )
        with self._lock, _refused(self.path):
            rows = self._connection.execute(f"SELECT {_ALL} FROM decisions {where} ORDER BY at, number", given)
            return [_decision(row) for row in rows]

    def count(self) -> int:
        """How many pairs are decided now, "unsure" among them."""
        query = """SELECT count(DISTINCT pair_id) FROM decisions AS d WHERE verdict IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM decisions AS n WHERE n.pair_id = d.pair_id AND n.person = d.person
             AND (n.at, n.number) > (d.at, d.number))"""
        with self._lock, _refused(self.path):
            return int(self._connection.execute(query).fetchone()[0])

    def people(self) -> list[str]:
        """Names of all who decided anything, in the order of their first decision."""
        with self._lock, _refused(self.path):
            rows = self._connection.execute("SELECT person FROM decisions GROUP BY person ORDER BY min(at)")
            return [row[0] for row in rows]

    def merge(self, decisions: Iterable[Decision]) -> int:
        """Take over history rows of another database, with their times, all or none; those that are here already are
        left out, and so are those without a verdict where the person has none of the pair to take back, such as the
        blank cells of a table. Returns how many were new. A row without a time gets the present one, unless this person
        has said the same of the pair before: what was imported once overrides nothing that was decided since.
        """
        with self._writing():
            before = int(self._connection.execute("SELECT coalesce(max(number), 0) FROM decisions").fetchone()[0])
            numbers: dict[int, int] = {}
            new = 0
            for decision in decisions:
                seen = self._connection.execute(*_same(checked(decision), before)).fetchone()
                if decision.verdict is None and seen is None and not self._has_verdict(decision):
                    continue
                if seen is None:
                    undoes = None if decision.undoes is None else numbers.get(decision.undoes)
                    number = self._insert(replace(decision, at=decision.at or self._now(), undoes=undoes))
                    new += 1
                else:
                    number = int(seen[0])
                if decision.number is not None:
                    numbers[decision.number] = number
            return new

    def _has_verdict(self, decision: Decision) -> bool:
        """Whether the person ever had a verdict of the pair."""
        query = "SELECT 1 FROM decisions WHERE pair_id = ? AND person = ? AND verdict IS NOT NULL LIMIT 1"
        return self._connection.execute(query, (decision.pair_id, decision.person)).fetchone() is not None

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> DecisionStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_audit(self, audit: str) -> None:
        found = self._connection.execute("SELECT value FROM about WHERE name = 'audit'").fetchone()
        if found is None and not self.read_only:
            with self._writing():
                self._connection.execute("INSERT OR IGNORE INTO about VALUES ('audit', ?)", (audit,))
        elif found is not None and found[0] != audit:
            raise InputError(
                f"{self.path} holds decisions about another audit's pairs; nothing was changed. Move it away, or take "
                "over what is about the same pairs: truepair decisions export of it, then import"
            )

    def _insert(self, decision: Decision) -> int:
        names = [name for name in _COLUMNS if name != "number"]
        statement = f"INSERT INTO decisions ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        cursor = self._connection.execute(statement, [getattr(decision, name) for name in names])
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _insert_once(self, decision: Decision, request: str | None) -> int:
        """A row of the present time, or the one that was written for the request before."""
        done = self._row_of_request(request)
        if done is not None:
            return done
        number = self._insert(replace(decision, at=self._now()))
        if request is not None:
            self._connection.execute("INSERT INTO requests VALUES (?, ?)", (request, number))
        return number

    def _take_back_unchanged(self, decision: Decision, request: str) -> Left | None:
        """Take it back unless the person thought otherwise of the pair since; why it was left, if it was."""
        undoing = self._one(f"SELECT {_ALL} FROM decisions WHERE undoes = ?", (decision.number,))
        if undoing is not None:
            return None if undoing.number == self._row_of_request(request) else "taken back"
        later = f"""SELECT {_ALL} FROM decisions AS d WHERE pair_id = ? AND person = ? AND (at, number) > (?, ?)
            AND {_STANDING} LIMIT 1"""
        if self._one(later, (decision.pair_id, decision.person, decision.at, decision.number)) is not None:
            return "changed"
        self._take_back(decision, request)
        return None

    def _take_back(self, decision: Decision, request: str | None) -> None:
        """A row that says what the person thought of the pair before this decision."""
        query = f"SELECT {_ALL} FROM decisions WHERE pair_id = ? AND person = ? AND (at, number) < (?, ?) {_LAST}"
        before = self._one(query, (decision.pair_id, decision.person, decision.at, decision.number))
        restored = before or replace(decision, verdict=None, caption=None, partner=None)
        self._insert_once(replace(restored, undoes=decision.number), request)

    def _named(self, name: str, person: str) -> Decision | None:
        query = f"""SELECT {_ALL} FROM decisions WHERE person = ? AND undoes IS NULL
            AND number = (SELECT number FROM requests WHERE name = ?)"""
        return self._one(query, (person, name))

    def _row_of_request(self, request: str | None) -> int | None:
        found = self._connection.execute("SELECT number FROM requests WHERE name = ?", (request,)).fetchone()
        return None if found is None else int(found[0])

    def _now(self) -> str:
        """The time, later than all in the history: whoever writes later is later, whatever the clocks say."""
        now = datetime.now(UTC)
        last = self._connection.execute("SELECT max(at) FROM decisions").fetchone()[0]
        if last is not None and last >= now.strftime(CLOCK):
            now = datetime.strptime(last, CLOCK).replace(tzinfo=UTC) + timedelta(microseconds=1)
        return now.strftime(CLOCK)

    def _one(self, query: str, given: tuple[Any, ...]) -> Decision | None:
        row = self._connection.execute(query, given).fetchone()
        return None if row is None else _decision(row)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction that nobody else writes in; it is on the disk when the block has ended, or not at all."""
        if self.read_only:
            raise InputError(f"{self.path} is open for reading alone; open it for writing to decide anything")
        with self._lock, _refused(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise


def _same(decision: Decision, before: int) -> tuple[str, tuple[Any, ...]]:
    """Asks for the number of the row that says what a decision of another history says; without a time, of a row up to
    `before`, so that the rows of one history stay apart.
    """
    whose = (decision.pair_id, decision.person)
    if decision.at is not None:
        return "SELECT number FROM decisions WHERE pair_id = ? AND person = ? AND at = ?", (*whose, decision.at)
    query = """SELECT number FROM decisions WHERE pair_id = ? AND person = ? AND verdict IS ? AND caption IS ?
        AND partner IS ? AND number <= ?"""
    return query, (*whose, decision.verdict, decision.caption, decision.partner, before)


def _connected(path: Path, read_only: bool) -> sqlite3.Connection:
    if path.exists():
        require_file(path)
    elif read_only:
        raise InputError(f"{path} does not exist: nothing was decided there yet. Check the path, or decide first")
    mode = "ro" if read_only else "rwc"
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    if read_only and not path.with_name(path.name + "-wal").exists() and not _may_write(path.parent):
        address += "&immutable=1"  # a disk that cannot be written to has no room for the log's index
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite does not wait by itself where another process is doing the same."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def _require_version(connection: sqlite3.Connection, path: Path) -> None:
    version = check_version(connection, path)
    if version != len(STEPS):
        state = "is empty" if not version else f"has version {version} of its tables"
        raise InputError(f"{path} {state}, and reading alone changes nothing; open it once for writing")


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turns what SQLite or the system refuses within the block into an InputError: what, and what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror or error}; give a file of decisions") from error
    except sqlite3.Error as error:
        raise InputError(f"{path} {_reason(str(error).lower())}") from error


def _reason(said: str) -> str:
    if any(word in said for word in _FULL):
        return "could not be written: the disk is full. Nothing that was kept is lost; free space and decide again"
    if "locked" in said or "busy" in said:
        return f"is being written to by others for {_PATIENCE:.0f} s; nothing was changed. Try again"
    if "not a database" in said:
        return "is no database of decisions; give another file, or move this one away"
    if "malformed" in said:
        return "is damaged; restore it from a copy, or save what is left with: sqlite3 FILE .recover"
    if "readonly" in said or "read-only" in said or "unable to open" in said:
        return "cannot be opened for this; check that its folder exists and its permissions"
    return f"could not be used ({said}); check the file and its disk"


def _decision(row: tuple[Any, ...]) -> Decision:
    return Decision(**dict(zip(_COLUMNS, row, strict=True)))
