"""The kept pairs in the format of the input."""

from __future__ import annotations

from pathlib import Path

from truepair.audit.result import AuditResult
from truepair.data.selection import Selection
from truepair.errors import InputError


def write_own(result: AuditResult, selection: Selection, folder: Path) -> None:
    """Writes the kept pairs into the new folder, in the format of the input, with their weights.

    Raises:
        InputError: the input has no format of its own that can be written, its pairs are not those of its files, or no
            pair is kept.
    """
    if not selection.kept.any():
        raise InputError(
            f"{result.collection.name}: no pair is kept, so there is nothing to write. Export ids, csv, jsonl or "
            "parquet instead"
        )
    folder.mkdir()
    result.collection.write(selection, folder)
