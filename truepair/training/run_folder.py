"""A run is a folder. This file knows what lies where in it, and that nothing in it is lost or overwritten.

config.json         complete, re-runnable configuration
vocabulary.json     word ids, in the field's format
metrics.jsonl       one line an epoch; the same bytes whether the run was interrupted or not
timings.jsonl       one line an epoch: seconds and pairs per second of the session that ended it
model.safetensors   the best model by dev rSum
pairs.parquet       what the method believes of every pair
result.json         the figures; exists once the run is finished
state/              the last checkpoint, for an exact resume
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truepair.errors import RunFolderError, TruepairError
from truepair.files import write_json_atomically


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run, and the rules for entering it."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def vocabulary(self) -> Path:
        return self.path / "vocabulary.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timings(self) -> Path:
        return self.path / "timings.jsonl"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def pairs(self) -> Path:
        return self.path / "pairs.parquet"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def checkpoint(self) -> Path:
        return self.path / "state" / "checkpoint.safetensors"

    @property
    def finished(self) -> bool:
        return self.result.exists()

    def begin(self, config: dict[str, Any], *, needed_bytes: int) -> None:
        """Create the folder for a new run and write its configuration.

        Raises:
            RunFolderError: something is there already, or the disk has too little room.
        """
        self.check_empty()
        self.check_room(needed_bytes)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be created: {error.strerror}; choose another --out") from error
        write_json_atomically(self.config, config)

    def check_empty(self) -> None:
        """Refuse a folder that already holds something.

        Raises:
            RunFolderError: it does.
        """
        try:
            used = self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be read: {error.strerror}; choose another --out") from error
        if used and self.config.exists():
            raise RunFolderError(
                f"{self.path} already holds a run; nothing was changed. Choose another --out, or continue that run "
                f"with --resume {self.path}"
            )
        if used:
            raise RunFolderError(
                f"{self.path} exists and is not an empty folder; nothing was changed. Choose another --out"
            )

    def clear_leftovers(self) -> None:
        """Remove temporary files of writes that a kill cut short; their names are this package's own."""
        for leftover in (*self.path.glob(".*.tmp"), *self.checkpoint.parent.glob(".*.tmp")):
            leftover.unlink(missing_ok=True)

    def check_room(self, needed_bytes: int) -> None:
        """Refuse to start a run the disk cannot hold."""
        parent = next(folder for folder in (self.path.absolute(), *self.path.absolute().parents) if folder.exists())
        free = shutil.disk_usage(parent).free
        if free < needed_bytes:
            raise RunFolderError(
                f"{self.path}: the disk has {free / 1e6:.0f} MB free, the run needs about {needed_bytes / 1e6:.0f} MB; "
                "free some room or choose another --out"
            )

    def read_config(self) -> dict[str, Any]:
        """The configuration of an existing run.

        Raises:
            RunFolderError: there is no run here, or its configuration is damaged.
        """
        try:
            config: dict[str, Any] = json.loads(self.config.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunFolderError(f"{self.path} is not a run folder: it holds no config.json") from error
        except (json.JSONDecodeError, UnicodeDecodeError, NotADirectoryError) as error:
            raise RunFolderError(f"{self.config} cannot be read as JSON ({error}); restore it from a copy") from error
        return config

    def check_config(self, config: dict[str, Any]) -> None:
        """Refuse to resume with another configuration than the run was started with.

        Raises:
            RunFolderError: names the first option that differs.
        """
        for place, (before, now) in differences(fixed_part(self.read_config()), fixed_part(config)):
            raise RunFolderError(
                f"{self.path} was started with {place} = {before!r}, now it is {now!r}; resume with the same "
                "configuration, or start a new run in another folder"
            )


def fixed_part(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration as JSON gives it back, without what may differ between the start of a run and its resumption."""
    kept: dict[str, Any] = json.loads(json.dumps(config))
    kept.pop("truepair", None)  # a newer version may go on with an older run
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
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if len(lines) > count:
        from truepair.files import write_text_atomically

        write_text_atomically(path, "".join(lines[:count]))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All records of a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
