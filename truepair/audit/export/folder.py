"""Writes an export: a new folder, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from truepair.audit.export.lists import write_ids, write_kept, write_weights
from truepair.audit.export.own import write_own
from truepair.audit.export.selection import selection_of
from truepair.audit.result import AuditResult
from truepair.errors import InputError, TruepairError
from truepair.files import temporary_name

TABLE_FORMATS = ("csv", "jsonl", "parquet")
FORMATS = ("own", "ids", *TABLE_FORMATS)


def export(result: AuditResult, out: Path | str, formats: Sequence[str]) -> list[Path]:
    """Writes the kept pairs and the weights of all into a new folder; returns what lies in it then.

    A pair is kept if it was scored, is not flagged, and its `p_match` is at least `result.options["keep"]`. The weight
    of a pair is its `p_match`, or 0 where it is flagged or was not scored.

    - `ids`: `kept_ids.txt` and `flagged_ids.txt`, one id a line.
    - `csv`, `jsonl`, `parquet`: `kept.<format>` with pair_id, image, caption, p_match and weight of the kept pairs, and
      `weights.<format>` with pair_id and weight of all pairs.
    - `own`: a folder `own/` in the format of the input, to be used in its place, with weights beside it; what is in it
      is told in the file of each format (`own_*.py`) and, where it needs words, in `own/README.txt`.

    Nothing of the input is changed. A stop in the middle leaves no folder `out`.

    Args:
        out: a folder that does not exist or is empty.
        formats: names out of `FORMATS`, at least one.

    Raises:
        InputError: a format is unknown or cannot express these pairs, or `out` is in use.
        TruepairError: the disk is full, or the folder may not be written to.
    """
    out = Path(out)
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        found = f"unknown format {unknown[0]!r}" if unknown else "no format"
        raise InputError(f"export: {found}; choose from {', '.join(FORMATS)}")
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise InputError(f"{out} exists already; expected a new or empty folder. Choose another one, or move it away")
    temporary = temporary_name(out)
    try:
        temporary.mkdir(parents=True)
        _write(result, temporary, dict.fromkeys(formats))
        if out.exists():
            out.rmdir()
        temporary.rename(out)
    except OSError as error:
        raise TruepairError(
            f"{out} could not be written: {error.strerror or error}; check the room on the disk and the permissions"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return sorted(out.iterdir())


def _write(result: AuditResult, folder: Path, formats: dict[str, None]) -> None:
    selection = selection_of(result)
    for name in formats:
        if name == "own":
            write_own(result, selection, folder / "own")
        elif name == "ids":
            write_ids(result.collection, selection, folder)
        else:
            write_kept(result.collection, selection, folder / f"kept.{name}")
            write_weights(result.collection, selection, folder / f"weights.{name}")
