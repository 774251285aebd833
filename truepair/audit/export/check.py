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


def check_export(
    formats: Sequence[str], data: Collection | str | Path, folder: AuditFolder, *, keep: float, source: str | None
) -> None:
    """Refuse, before hours of work, an export that would fail after them.

    Args:
        formats: what is asked for.
        data: the collection, or the name of the input before it is opened.
        folder: of the audit. An export that is there already stays as it is.
        keep: the least p_match of the pairs to be kept.
        source: the name of the input, where it has one.

    Raises:
        InputError: a format is unknown; `own` of an input that has none that can be written; or there is an export
            already, without one of these formats or of another `keep`.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"export: unknown format {unknown[0]!r}; choose from {', '.join(FORMATS)}")
    if "own" in formats and not has_own_format(data, source):
        name = data.name if isinstance(data, Collection) else data
        raise InputError(
            f"{name} has no format of its own that can be written; that of precomp folders, tables, shards and "
            "embeddings can. Export ids, csv, jsonl or parquet instead"
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


def has_own_format(data: Collection | str | Path, source: str | None) -> bool:
    """Whether the input has a format that `own` can write."""
    from truepair.data.formats.embeddings.files import EmbeddingFiles
    from truepair.data.formats.precomp.write import is_precomp
    from truepair.data.formats.shards.shards import ShardCollection
    from truepair.data.formats.tables.tables import TableCollection
    from truepair.data.open import has_own_labels, is_drawn

    if isinstance(data, EmbeddingFiles | TableCollection | ShardCollection):
        return True
    if isinstance(data, Collection):
        return source is not None and is_precomp(source)
    return not is_drawn(data) and not has_own_labels(data)
