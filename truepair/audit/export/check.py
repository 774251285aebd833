"""What can be told of an export before the audit begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truepair.audit.export.folder import FORMATS
from truepair.audit.folder import AuditFolder
from truepair.data.collection import Collection
from truepair.errors import InputError
from truepair.files import read_json_object

_HOLDS = {"own": "own", "ids": "kept_ids.txt"}


def check_export(formats: Sequence[str], data: Collection | str | Path, folder: AuditFolder, *, keep: float) -> None:
    """Refuse, before hours of work, an export that would fail after them.

    Args:
        formats: what is asked for.
        data: the collection, or the name of the input before it is opened.
        folder: of the audit. An export that is there already stays as it is.
        keep: the least p_match of the pairs to be kept.

    Raises:
        InputError: a format is unknown; `own` of an input that has none that can be written; or there is an export
            already, without one of these formats or of another `keep`.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"export: unknown format {unknown[0]!r}; choose from {', '.join(FORMATS)}")
    if "own" in formats and isinstance(data, Collection) and not data.writable:
        raise InputError(
            f"{data.name} has no format of its own that can be written. Export ids, csv, jsonl or parquet instead"
        )
    out = folder.export
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    lacking = [name for name in dict.fromkeys(formats) if not (out / _HOLDS.get(name, f"kept.{name}")).exists()]
    if lacking:
        raise InputError(f"{out} exists already, without {' and '.join(lacking)}; move it away to export anew")
    made = read_json_object(folder.export_note, "what an audit wrote") if folder.export_note.exists() else {}
    if made.get("keep") != keep:
        raise InputError(
            f"{out} exists already, made with keep = {made.get('keep')}, now it is {keep}; move it away to export anew"
        )
