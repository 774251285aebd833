"""The folder of an audit: its results, and in `work/` what it needs again when it goes on after a stop.

`work/audit.json` says which audit it is. A folder that holds anything else is never written to.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.errors import InputError, RunFolderError
from truepair.files import write_json_atomically
from truepair.training.run_folder import RunFolder, config_digest, differences

_FREE = ("rematch", "keep", "engine", "workers")
"""Options that a later call may change: how many pairs get proposals, what is exported, what does the work."""
_OTHERS = {"pairs": "of other pairs", "run": "by another run"}


@dataclass(frozen=True)
class AuditFolder:
    """Paths of an audit, and the rules for entering it."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def mark(self) -> Path:
        return self.work / "audit.json"

    @property
    def export(self) -> Path:
        return self.path / "export"

    @property
    def export_note(self) -> Path:
        """What the export was made with."""
        return self.work / "export.json"

    @property
    def begun(self) -> bool:
        return self.mark.exists()

    def check(self) -> None:
        """Refuse a folder that holds something, but no audit.

        Raises:
            RunFolderError: it does, or is no folder.
        """
        try:
            names = {path.name for path in self.path.iterdir()}
        except FileNotFoundError:
            return
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be read: {error.strerror}; choose another --out") from error
        if names - {self.work.name} and not self.begun:
            raise RunFolderError(
                f"{self.path} is not empty and holds no audit; nothing was changed. Choose another --out"
            )

    def begin(self, identity: dict[str, Any]) -> None:
        """Start here, or go on with the very same audit; leftovers of a kill are removed.

        Args:
            identity: all that decides what an audit finds; JSON values.

        Raises:
            RunFolderError: the folder holds something else, or an audit of another identity; the message names the
                first difference. Or it cannot be made.
        """
        self.check()
        wanted = json.loads(json.dumps(identity))
        if self.begun:
            found = self.identity()
            for name in wanted:
                for place, (before, now) in differences(found.get(name), wanted[name], name):
                    what = _OTHERS.get(place) or f"with {place} = {before!r}, now it is {now!r}"
                    raise RunFolderError(
                        f"{self.path} holds an audit {what}; nothing was changed. Choose another --out, or remove that "
                        "audit"
                    )
        try:
            self.work.mkdir(parents=True, exist_ok=True)
            for leftover in self.path.glob(".*.tmp"):
                if leftover.is_dir() and not leftover.is_symlink():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
        except OSError as error:
            raise RunFolderError(f"{self.path} cannot be written to: {error.strerror}; choose another --out") from error
        write_json_atomically(self.mark, wanted)

    def identity(self) -> Any:
        """What `work/audit.json` says.

        Raises:
            RunFolderError: it is damaged.
        """
        try:
            return json.loads(self.mark.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunFolderError(
                f"{self.mark} cannot be read ({error}); expected what an audit wrote. Choose another --out"
            ) from error


def identity_of(collection: Collection, way: str, run: Path | None, chosen: dict[str, Any]) -> dict[str, Any]:
    """All that decides what an audit believes of its pairs."""
    from truepair.training.setup import fingerprint

    if isinstance(collection, EmbeddingCollection):
        held = collection.fingerprint()
    elif isinstance(collection, PairsCollection):
        held = fingerprint(collection.pairs)
    else:
        raise InputError(f"{collection.name} has neither features nor embeddings to score by")
    return {
        "way": way,
        "pairs": held,
        "run": None if run is None else config_digest(RunFolder(run).read_config()),
        "options": {name: value for name, value in chosen.items() if name not in _FREE},
    }
