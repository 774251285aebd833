"""The folder of an audit: its results, and in `work/` what it needs again when it goes on after a stop.

`work/audit.json` says which audit it is, and so does `summary.json` once it is finished; an export says itself what it
was made with: `work/` may be deleted then. A folder that holds anything else is never written to.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truepair.audit.scoring.scorers import Scorer
from truepair.errors import InputError, RunFolderError
from truepair.files import clear_leftovers, foreign_in, locked, read_json_object, write_json_atomically
from truepair.training.run_folder import RunFolder, config_digest, differences

SUMMARY = "summary.json"
EXPORT_NOTE = "made_with.json"
"""In an export: what it was made with."""
VERSION = 2
"""Of what `work/` holds; an audit that an older version began cannot go on."""
_FREE = ("rematch", "keep", "engine", "workers")
"""Options that a later call may change: how many pairs get proposals, what is exported, what does the work."""
_OTHERS = {"pairs": "of other pairs", "run": "by another run"}


class AuditFolder:
    """Paths of an audit, and the rules for entering it."""

    def __init__(self, path: Path) -> None:
        self.path, self.work, self.export = path, path / "work", path / "export"
        self.mark, self.lock = self.work / "audit.json", self.work / "lock"
        self.summary = path / SUMMARY

    @property
    def begun(self) -> bool:
        return self.mark.exists()

    def finished(self) -> dict[str, Any] | None:
        """What a finished audit here says of itself in its summary; None where there is none, or an older one."""
        if not self.summary.is_file():
            return None
        try:
            found = read_json_object(self.summary, "the figures of an audit").get("identity")
        except InputError:
            return None
        return found if isinstance(found, dict) else None

    def export_made_with(self) -> dict[str, Any] | None:
        """What the export here says it was made with, or `work/` of earlier versions does; None where neither does.

        An InputError where that cannot be read.
        """
        for note in (self.export / EXPORT_NOTE, self.work / "export.json"):
            if note.is_file():
                return read_json_object(note, "what an audit wrote")
        return None

    def check(self) -> None:
        """Refuse, with a RunFolderError, what is no folder, or one that holds something, but no audit."""
        if self.begun or self.finished() is not None:
            return
        if foreign_in(self.path, self.lock, *(self.work / name for name in ("crossfit", "scores", "run", "encoder"))):
            raise RunFolderError(
                f"{self.path} is not empty and holds no audit that can go on; nothing was changed. Choose another --out"
            )

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Within the block this process alone writes here; what a kill left of files in the making is removed.

        A RunFolderError where another process does, or the folder cannot be written to.
        """
        self.check()
        with locked(self.path, self.lock):
            clear_leftovers(self.path, self.work, *(self.work / name for name in ("crossfit", "run", "encoder")))
            yield

    def begin(self, identity: dict[str, Any]) -> None:
        """Start here, or go on with the very same audit; for the owner of the folder.

        Args:
            identity: all that decides what an audit finds; JSON values. A RunFolderError names the first difference.
        """
        self.check()
        wanted = json.loads(json.dumps(identity))
        found = self.finished()
        if self.begun:
            found = read_json_object(self.mark, "what an audit wrote", error=RunFolderError)
        if found is not None:
            if found.get("version") != VERSION:
                raise RunFolderError(
                    f"{self.path} holds an audit of another version of truepair, whose scores cannot be read; nothing "
                    "was changed. Its results stay readable. Choose another --out, or remove that audit"
                )
            for name in wanted:
                for place, (before, now) in differences(found.get(name), wanted[name], name):
                    what = _OTHERS.get(place) or f"with {place} = {before!r}, now it is {now!r}"
                    raise RunFolderError(
                        f"{self.path} holds an audit {what}; nothing was changed. Choose another --out, or remove that "
                        "audit"
                    )
        write_json_atomically(self.mark, wanted)

    @contextmanager
    def refusable(self, identity: dict[str, Any]) -> Iterator[None]:
        """`begin`; where the block is refused with nothing trained or scored yet, a corrected audit may begin here."""
        fresh = not self.begun and self.finished() is None
        self.begin(identity)
        try:
            yield
        except InputError:
            if fresh and not any(self.work.rglob("*.safetensors")):
                for scorer in (path for path in self.work.iterdir() if path.is_dir()):
                    shutil.rmtree(scorer)
                self.mark.unlink()
            raise


def identity_of(scorer: Scorer, run: Path | None) -> dict[str, Any]:
    """All that decides what an audit believes of its pairs."""
    return {
        "version": VERSION,
        "scored_by": scorer.name,
        "pairs": scorer.fingerprint(),
        "run": None if run is None else config_digest(RunFolder(run).read_config()),
        "options": {name: value for name, value in scorer.options.items() if name not in _FREE},
    }
