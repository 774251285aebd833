"""A run is a folder. This file knows what lies where in it, and that nothing in it is lost or overwritten.

config.json         complete, re-runnable configuration
decisions.jsonl     what people had decided of the pairs when it began, where it was trained with decisions
vocabulary.json     word ids, in the field's format
metrics.jsonl       one line an epoch; the same bytes whether the run was interrupted or not
timings.jsonl       one line an epoch, of the session that ended it: seconds of the clock and of processor time without
                    scoring, pairs per second of its batches
model.safetensors   the best model by dev rSum
pairs.parquet       what the method believes of every pair
result.json         the figures; exists once the run is finished
state/              the last checkpoint, for an exact resume, and the lock of the process that trains
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truepair.encoders import FIRST
from truepair.errors import RunFolderError, TruepairError
from truepair.files import (
    clear_leftovers,
    foreign_in,
    leftovers,
    locked,
    read_file,
    read_json_lines,
    read_json_object,
    write_bytes_atomically,
    write_json_atomically,
)
from truepair.phrases import size


class RunFolder:
    """Paths of a run, and the rules for entering it."""

    def __init__(self, path: Path) -> None:
        self.path, self.config, self.vocabulary = path, path / "config.json", path / "vocabulary.json"
        self.metrics, self.timings = path / "metrics.jsonl", path / "timings.jsonl"
        self.model, self.pairs, self.result = path / "model.safetensors", path / "pairs.parquet", path / "result.json"
        self.decisions = path / "decisions.jsonl"
        self.checkpoint, self.lock = path / "state" / "checkpoint.safetensors", path / "state" / "lock"

    @property
    def finished(self) -> bool:
        return self.result.exists()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Within the block this process alone writes here; what a kill left of files in the making is removed.

        Raises:
            RunFolderError: another process does, or the folder cannot be written to.
        """
        with locked(self.path, self.lock):
            clear_leftovers(self.path, self.checkpoint.parent)
            yield

    def check_free(self) -> None:
        """Raises RunFolderError: the folder holds no run, or another process works in it."""
        self.read_config()
        if not self.finished:
            with self.owned():
                pass

    def begin(self, config: dict[str, Any], decisions: bytes | None = None) -> None:
        """Write the configuration of a new run, and what people decided of its pairs; for the owner of the folder. A
        RunFolderError where something is.
        """
        self.check_empty()
        if decisions is not None:  # first: a run that has its configuration has them, too
            write_bytes_atomically(self.decisions, decisions)
        try:
            write_json_atomically(self.config, config)
        except BaseException:
            if decisions is not None:
                self.decisions.unlink(missing_ok=True)
            raise

    def check_empty(self) -> None:
        """Refuse a folder that already holds something, but for what a run leaves that was killed before it began.

        Raises:
            RunFolderError: it does.
        """
        if self.config.exists():
            raise RunFolderError(
                f"{self.path} already holds a run; nothing was changed. Choose another --out, or continue that run "
                f"with --resume {self.path}"
            )
        ours = [self.decisions] if self.lock.exists() else []  # of a run that was killed between the two
        if foreign_in(self.path, self.lock, *ours):
            raise RunFolderError(
                f"{self.path} exists and is not an empty folder; nothing was changed. Choose another --out"
            )

    def check_room(self, needed_bytes: int) -> None:
        """Refuse to start a run the disk cannot hold."""
        parent = next(folder for folder in (self.path.absolute(), *self.path.absolute().parents) if folder.exists())
        free = shutil.disk_usage(parent).free
        if free < needed_bytes:
            raise RunFolderError(
                f"{self.path}: the run needs about {size(needed_bytes)}, and the disk has {size(free)} free; "
                "free some room or choose another --out"
            )

    def read_config(self) -> dict[str, Any]:
        """The configuration of an existing run.

        Raises:
            RunFolderError: there is no run here, or its configuration is damaged.
        """
        if not self.config.exists():
            begun = self.path.is_dir() and (self.lock.exists() or leftovers(self.path))
            why = (
                "its run was stopped before it began; start it again with --out" if begun else "it holds no config.json"
            )
            raise RunFolderError(f"{self.path} is not a run folder: {why}")
        config = read_json_object(self.config, "the configuration of a run", error=RunFolderError)
        for part in ("data", "method", "model", "training", "augmentation"):
            if not isinstance(config.get(part), dict | None):
                raise RunFolderError(f"{self.config}: {part} is no object; restore the file from a copy")
        return config

    def read_result(self) -> dict[str, Any]:
        """The figures of a finished run. Raises RunFolderError: they are damaged."""
        result = read_json_object(self.result, "the figures of a finished run", error=RunFolderError)
        for part in ("method", "pairs", "best_epoch", "dev", "test", "division", "detection"):
            if part not in result:
                raise RunFolderError(f"{self.result} lacks {part!r}; restore the file from a copy")
        return result

    def check_config(self, config: dict[str, Any]) -> None:
        """Refuse to resume with another configuration than the run was started with.

        Raises:
            RunFolderError: names the first option that differs, or that there was not yet; or the method comes to other
                figures than it did then.
        """
        kept = fixed_part(self.read_config())
        before, now = kept.get("method") or {}, config.get("method") or {}
        if before.get("name") == now.get("name") and before.get("revision") != now.get("revision"):
            raise RunFolderError(
                f"{self.path} was begun with another revision of the method {now['name']}, which came to other "
                "figures; finish it with the version of truepair that began it, or start a new run in another folder"
            )
        for place, (before, now) in differences(kept, fixed_part(config)):
            known = {"training": kept.get("training"), "method.options": (kept.get("method") or {}).get("options")}
            part, _, option = place.rpartition(".")
            if option not in (known.get(part) or {option}):
                raise RunFolderError(
                    f"{self.path} was begun by a version of truepair without {place}; finish it with that version, or "
                    "start a new run in another folder"
                )
            raise RunFolderError(
                f"{self.path} was started with {place} = {before!r}, now it is {now!r}; resume with the same "
                "configuration, or start a new run in another folder"
            )


def fixed_part(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration as JSON gives it back, without what may differ between the start of a run and its resumption."""
    kept: dict[str, Any] = json.loads(json.dumps(config))
    kept.pop("truepair", None)  # a newer version may go on with an older run
    data = kept.get("data") or {}
    if data.get("encoder") == FIRST:  # which earlier versions did not name
        del data["encoder"]
    for name in ("workers", "checkpoint_minutes"):  # they change no number
        kept.get("training", {}).pop(name, None)
    return kept


def config_digest(config: dict[str, Any]) -> str:
    """A short hash of `fixed_part`: what a checkpoint carries to tell which run it belongs to."""
    return hashlib.sha256(json.dumps(fixed_part(config), sort_keys=True).encode()).hexdigest()[:16]


def differences(before: Any, now: Any, place: str = "") -> list[tuple[str, tuple[Any, Any]]]:
    """Every leaf at which two JSON values differ: (dotted place, (before, now))."""
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for key in sorted({*before, *now}):
            found += differences(before.get(key), now.get(key), f"{place}.{key}" if place else key)
        return found
    return [] if before == now else [(place, (before, now))]


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Add one JSON line to a log."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())  # the checkpoint that counts this line is written next
    except OSError as error:
        raise TruepairError(
            f"{path} could not be written: {error.strerror}; free space or check the permissions, then resume the run"
        ) from error


def keep_lines(path: Path, count: int) -> None:
    """Cut a log back to its first lines: those of epochs that a checkpoint knows."""
    if not path.exists():
        return
    lines = read_file(path).splitlines(keepends=True)
    if len(lines) > count:
        write_bytes_atomically(path, b"".join(lines[:count]))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All records of a log; raises RunFolderError where one is damaged."""
    return read_json_lines(path, "the record of an epoch", error=RunFolderError) if path.exists() else []
