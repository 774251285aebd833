"""`results/TABLE.jsonl`: one run a line, sorted by name, so that a new run is one new line in a diff."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.files import write_text_atomically, writing
from truepair.reproduce.cells import Record


def read_records(path: Path) -> list[Record]:
    """All records of a file, by name; none where there is no file. An InputError where a line is no record, or two have
    one name.
    """
    if not path.exists():
        return []
    now = path.stat()
    return list(_parsed(path, (now.st_ino, now.st_mtime_ns, now.st_size)))


@lru_cache(maxsize=64)
def _parsed(path: Path, state: tuple[int, ...]) -> tuple[Record, ...]:
    """The records of a file in a state (inode, time, size). Callers share them, so nobody may change one. A report
    reads those of most tables several times.
    """
    found: dict[str, Record] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            name = record["name"]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path}, line {number} is no record ({error}); restore the line, or delete it") from error
        if name in found:
            raise InputError(f"{path}, line {number}: a second record of {name}; delete one of them")
        found[name] = record
    return tuple(found[name] for name in sorted(found))


def finished_and_diverged(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Records of runs that came to their end, and of those that diverged, which have no figures."""
    parted: tuple[list[Record], list[Record]] = [], []
    for record in records:
        parted["diverged" in record].append(record)
    return parted


def versions_of(records: Iterable[Record]) -> list[str]:
    """The versions of the package that records are of, the newest first."""
    found = {str(record["truepair"]) for record in records if record.get("truepair")}
    return sorted(found, key=lambda version: [int(number) for number in re.findall(r"\d+", version)], reverse=True)


def of_older_version(records: Sequence[Record]) -> list[Record]:
    """Those of another version than the newest among them."""
    newest = versions_of(records)[:1]
    return [record for record in records if record.get("truepair") and record["truepair"] not in newest]


def kept_in_warm_up(record: Record) -> bool:
    """Whether the epoch that dev chose is one of the warm-up, of a run that goes on after it: the figures are those of
    the warm-up, not of what the method does then.
    """
    options = record.get("options", {})
    method = options.get("method")
    warm_up = method.get("options", {}).get("warm_up_epochs") if isinstance(method, dict) else None
    best = record.get("result", {}).get("best_epoch")
    return bool(warm_up and best and best <= warm_up < options["training"]["epochs"])


def seconds_of(record: Record) -> float:
    """What its training took: processor time, or by the clock where the record is of before that was kept (until
    2026-11-27, without what a method does before the first batch of an epoch).
    """
    return float(record["cpu_seconds"] if "cpu_seconds" in record else record["training_seconds"])


def figure_of(record: Record, path: str) -> float | None:
    """A figure by its dotted place in the record, None where there is none; or the last epoch's clean share."""
    if path == "clean share":
        last = record["epochs"][-1]
        return float(last["clean"] / sum(last[part] for part in ("clean", "hard", "noisy")))
    found: Any = record
    for key in path.split("."):
        found = found[int(key)] if isinstance(found, list) else (found or {}).get(key)
    return None if found is None else float(found)


def text_of(records: list[Record]) -> str:
    """The lines of a file. Raises ValueError for NaN and infinity."""
    lines = (json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records)
    return "".join(f"{line}\n" for line in lines)


def keep_record(path: Path, record: Record) -> None:
    """Add a record to a file, or put it in the place of that of the same name; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    with writing(lock), lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # goes with the process that holds it
        others = [other for other in read_records(path) if other["name"] != record["name"]]
        write_text_atomically(path, text_of(sorted([*others, record], key=lambda other: str(other["name"]))))
