"""The database of decisions: its tables, version by version, and what is refused as none of ours."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from truepair.errors import InputError
from truepair.files import temporary_name

APPLICATION = 0x54505244
"""SQLite's application_id of such a database ("TPRD")."""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        """CREATE TABLE decisions (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            pair_id TEXT NOT NULL,
            verdict TEXT CHECK (verdict IN ('match', 'mismatch', 'unsure')),
            person TEXT NOT NULL,
            chosen_by TEXT NOT NULL,
            caption TEXT,
            partner TEXT,
            probability_chosen REAL CHECK (probability_chosen > 0 AND probability_chosen <= 1),
            seconds REAL CHECK (seconds >= 0),
            at TEXT NOT NULL,
            undoes INTEGER REFERENCES decisions (number),
            UNIQUE (pair_id, person, at)
        )""",
        "CREATE INDEX decisions_of_person ON decisions (person, at)",
        "CREATE INDEX undone ON decisions (undoes) WHERE undoes IS NOT NULL",
        "CREATE TABLE requests (name TEXT PRIMARY KEY, number INTEGER NOT NULL REFERENCES decisions (number))",
    ),
)
"""Statements that lead from each version to the next: a new database takes all of them, an older one the rest."""


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new database, or bring an older one to this version, after a copy of it was kept.

    Raises:
        InputError: the file is another program's database, or a newer version's.
    """
    version = check_version(connection, path)
    if version == len(STEPS):
        return
    if version:
        keep_copy(connection, path, version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
        for statement in (statement for step in STEPS[found:] for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_version(connection: sqlite3.Connection, path: Path) -> int:
    """Version of the tables, 0 of an empty database; an InputError where they are not ours, or of a newer version."""
    version, application, tables = (
        int(connection.execute(query).fetchone()[0])
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if application != APPLICATION and (tables or application or version):
        raise InputError(f"{path} is a database of another program; give a file of decisions, or a new name")
    if version > len(STEPS):
        raise InputError(
            f"{path} was written by a newer truepair (version {version} of its tables; this one knows {len(STEPS)}); "
            "nothing was changed. Use that version, which can also export it"
        )
    return version


def keep_copy(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy of the database beside it, named by its version, whole or not at all."""
    copy = path.with_name(f"{path.stem}.version{version}{path.suffix}")
    temporary = temporary_name(copy)
    try:
        target = sqlite3.connect(temporary)
        try:
            connection.backup(target)
        finally:
            target.close()
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(copy)
    finally:
        temporary.unlink(missing_ok=True)
    return copy
