"""Which exporter writes the input's own format."""

from __future__ import annotations

from pathlib import Path

from truepair.audit.export.selection import Selection
from truepair.audit.result import AuditResult
from truepair.data.collection import PairsCollection
from truepair.errors import InputError

_OTHERS = "ids, csv, jsonl or parquet"


def write_own(result: AuditResult, selection: Selection, folder: Path) -> None:
    """Writes the kept pairs into the new folder, in the format of the input, with their weights.

    Raises:
        InputError: the input has no format of its own that can be written, its pairs are not those of its files, or no
            pair is kept.
    """
    # What reads the inputs stays out of programs that only ask which formats there are.
    from truepair.data.formats.embeddings.files import EmbeddingFiles
    from truepair.data.formats.embeddings.write import write_embeddings
    from truepair.data.formats.precomp.write import is_precomp, write_precomp
    from truepair.data.formats.shards.shards import ShardCollection
    from truepair.data.formats.shards.write import write_shards
    from truepair.data.formats.tables.tables import TableCollection
    from truepair.data.formats.tables.write import write_table

    collection, source, split = result.collection, result.options.get("source"), result.options.get("split")
    if not selection.kept.any():
        raise InputError(f"{collection.name}: no pair is kept, so there is nothing to write. Export {_OTHERS} instead")
    folder.mkdir()
    if isinstance(collection, EmbeddingFiles):
        write_embeddings(collection, selection, folder)
    elif isinstance(collection, TableCollection | ShardCollection):
        mismatched = collection.mismatched()
        if mismatched is not None and mismatched.any():
            raise InputError(
                f"{collection.name}: noise was injected, and its pairs are not those of {source}. Export {_OTHERS} "
                "instead"
            )
        if isinstance(collection, TableCollection):
            write_table(collection, selection, split, folder)
        else:
            write_shards(collection, selection, result.options.get("caption"), folder)
    elif isinstance(collection, PairsCollection) and source is not None and is_precomp(str(source)):
        write_precomp(collection.pairs, selection, str(source), split or "train", folder)
    else:
        raise InputError(
            f"{collection.name} has no format of its own that can be written; that of precomp folders, tables, shards "
            f"and embeddings can. Export {_OTHERS} instead"
        )
