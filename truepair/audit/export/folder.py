"""Writes an export: a new folder, whole or not at all; and says before the audit what could not be written after it."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.export.lists import WRITERS, write_ids, write_kept, write_weights
from truepair.audit.folder import EXPORT_NOTE, AuditFolder
from truepair.audit.result import AuditResult
from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.handed_on.layouts import LAYOUTS
from truepair.data.pairs import IntArray
from truepair.data.selection import Selection
from truepair.errors import InputError, TruepairError
from truepair.files import temporary_name, write_json_atomically

FORMATS = ("own", "ids", *WRITERS, *LAYOUTS)
_HOLDS = {"own": "own", "ids": "kept_ids.txt", **{name: layout.holds for name, layout in LAYOUTS.items()}}


def check_export(
    formats: Sequence[str],
    data: Collection | str | Path,
    folder: AuditFolder,
    *,
    keep: float,
    decisions: str | None = None,
) -> None:
    """Refuse, before hours of work, an export that would fail after them: a format is unknown; `own` of an input that
    has none that can be written; or there is an export already, without one of these formats, of another `keep` or of
    other decisions, or nothing says of which.

    Args:
        data: the collection, or the name of the input before it is opened.
        folder: of the audit. An export that is there already stays as it is.
        keep: the least p_match of the pairs to be kept.
        decisions: digest of the decisions that are taken into account.
    """
    check_formats(formats)
    if "own" in formats and isinstance(data, Collection) and not data.writable:
        raise InputError(
            f"{data.name} has no format of its own that can be written. Export ids, csv, jsonl or parquet instead"
        )
    check_layouts(formats, data)
    out = folder.export
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    lacking = [name for name in dict.fromkeys(formats) if not (out / _HOLDS.get(name, f"kept.{name}")).exists()]
    if lacking:
        raise InputError(f"{out} exists already, without {' and '.join(lacking)}; move it away to export anew")
    made = folder.export_made_with()
    if made is None:
        raise InputError(
            f"{out} exists already, and nothing there says what it was made with; move it away to export anew"
        )
    if made.get("keep") != keep:
        raise InputError(
            f"{out} exists already, made with keep = {made.get('keep')}, now it is {keep}; move it away to export anew"
        )
    if made.get("decisions") != decisions:
        raise InputError(f"{out} exists already, made with other decisions; move it away to export anew")


def check_layouts(formats: Sequence[str], data: Collection | str | Path) -> None:
    """Raises InputError: a collection that is open already cannot be handed on in one of the layouts."""
    for name in formats:
        if name in LAYOUTS and isinstance(data, Collection):
            LAYOUTS[name].check(data)


def check_formats(formats: Sequence[str]) -> None:
    unknown = [f"unknown format {name!r}" for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise InputError(f"export: {[*unknown, 'no format'][0]}; choose from {', '.join(FORMATS)}")


def export(
    result: AuditResult, out: Path | str, formats: Sequence[str], *, made_with: Mapping[str, Any] | None = None
) -> list[Path]:
    """Writes the kept pairs and the weights of all into a new folder; returns what lies in it then.

    A pair is kept if it was scored, is not flagged, and its `p_match` is at least `result.options["keep"]`. The weight
    of a pair is its `p_match`, or 0 where it is flagged or was not scored.

    A pair whose caption people corrected is kept with the corrected one, but in `own` of formats that copy the bytes of
    their files (tables, shards, embeddings): there it is kept as given, if at all.

    - `ids`: `kept_ids.txt` and `flagged_ids.txt`, one id a line.
    - `csv`, `jsonl`, `parquet`: `kept.<format>` with pair_id, image, caption, p_match and weight of the kept pairs, and
      `weights.<format>` with pair_id and weight of all pairs.
    - the names of `LAYOUTS`: what other tools read; see their files in `data/formats/handed_on`.
    - `own`: a folder `own/` in the format of the input, to be used in its place, with weights beside it; what is in it
      is told beside the writer of each format (`data/formats`) and, where it needs words, in `own/README.txt`.

    Nothing of the input is changed. A stop in the middle leaves no folder `out`.

    Args:
        out: a folder that does not exist or is empty.
        formats: names out of `FORMATS`, at least one.
        made_with: JSON values that tell this export from others of the audit, kept in it as `made_with.json`.

    Raises:
        InputError: a format is unknown or cannot express these pairs, or `out` is in use.
        TruepairError: the disk is full, or the folder may not be written to.
    """
    out = Path(out)
    check_formats(formats)
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise InputError(f"{out} exists already; expected a new or empty folder. Choose another one, or move it away")
    temporary = temporary_name(out)
    try:
        temporary.mkdir(parents=True)
        _write(result, temporary, dict.fromkeys(formats))
        if made_with is not None:
            write_json_atomically(temporary / EXPORT_NOTE, dict(made_with))
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
    given, p_match, flagged = result.collection, result.verdict.p_match, result.verdict.flagged
    collection, corrected = corrected_by_people(result)
    count = len(collection)
    none = np.zeros(count, np.bool_)
    selection = Selection(none, none.copy(), np.zeros(count, np.float32), np.full(count, np.nan, np.float32))
    selection.kept[result.rows] = ~flagged & (p_match >= float(result.options.get("keep", 0.0)))
    selection.flagged[result.rows] = flagged
    assert selection.p_match is not None
    selection.p_match[result.rows] = p_match
    selection.weights[result.rows] = np.where(flagged, 0, p_match)
    as_given = Selection(*(column.copy() for column in vars(selection).values()))
    selection.kept[corrected], selection.flagged[corrected] = True, False
    selection.p_match[corrected] = selection.weights[corrected] = 1
    for name in formats:
        if name == "own":
            own = (collection, selection) if given.written_from_pairs else (given, as_given)
            if not own[1].kept.any():
                raise InputError(
                    f"{collection.name}: no pair is kept, so there is nothing to write. Export ids, csv, jsonl or "
                    "parquet instead"
                )
            (folder / "own").mkdir()
            own[0].write(own[1], folder / "own")
        elif name in LAYOUTS:
            LAYOUTS[name].check(collection)
            LAYOUTS[name].write(collection, selection, folder)
        elif name == "ids":
            write_ids(collection, selection, folder)
        else:
            write_kept(collection, selection, folder / f"kept.{name}")
            write_weights(collection, selection, folder / f"weights.{name}")


def corrected_by_people(result: AuditResult) -> tuple[Collection, IntArray]:
    """The collection with the captions that people corrected in their places, and the rows of these pairs, which match
    now. Vectors of texts know nothing of new words: there it is as it was, and no row.
    """
    collection, people = result.collection, result.people
    if people is None or not isinstance(collection, PairsCollection) or collection.pairs.texts.features is not None:
        return collection, np.empty(0, dtype=np.int64)
    captions = {int(result.rows[place]): caption for place, caption in people.captions.items()}
    changed = copy.copy(collection)
    changed.pairs = collection.pairs.with_captions(captions)
    return changed, np.array(sorted(captions), dtype=np.int64)
