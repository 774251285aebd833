"""`pairs.parquet` of a run: what the method believes of every pair. Columns: `data.pair_columns`, docs/pairs.md."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import Any

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.data.pair_columns import COLUMNS, described_schema
from truepair.data.pairs import Pairs
from truepair.data.repeats import image_digests
from truepair.errors import RunFolderError
from truepair.evaluation.label_correction import corrected_classes
from truepair.files import require_file, write_bytes_atomically
from truepair.methods.base import LabelBeliefs, Method


def write_pair_table(path: Path, pairs: Pairs, method: Method, memory: CorrespondenceMemory) -> None:
    """Write one row a pair, in the order of the pairs."""
    import pyarrow
    from pyarrow import parquet

    columns: dict[str, Any] = {
        "pair_id": pairs.ids(),
        "row": pairs.source_rows,
        "image": [pairs.images.ids[row] for row in pairs.image_index],
        "caption": [pairs.texts.captions[row] for row in pairs.text_index],
    }
    belief, labels = method.belief(memory).numpy(), method.label_beliefs(memory)
    if labels is None:
        columns["p_match"] = belief
    columns["flagged"] = ~method.taken_as_matched(memory).numpy()
    if pairs.mismatched is not None:
        columns["mismatched"] = pairs.mismatched
    columns |= {
        "division": [Part(part).name.lower() for part in method.division(memory).tolist()],
        "image_index": pairs.image_index,
        "text_index": pairs.text_index,
        "text": [pairs.texts.ids[row] for row in pairs.text_index],
        "image_digest": image_digests(pairs.images.features)[pairs.image_index],
        **{f"memory_{name}": values.numpy() for name, values in memory.tensors().items() if values.ndim == 1},
    }
    if labels is not None:
        columns |= label_columns(pairs, labels, belief)
    kinds = {
        name: COLUMNS.get(name, (str(getattr(values, "dtype", "")), COLUMNS["memory_…"][1]))
        for name, values in columns.items()
    }
    buffer = io.BytesIO()
    parquet.write_table(
        pyarrow.table(columns, schema=described_schema(kinds)), buffer, compression="zstd", write_page_checksum=True
    )
    write_bytes_atomically(path, buffer.getvalue())


def label_columns(pairs: Pairs, beliefs: LabelBeliefs, belief: Any) -> dict[str, Any]:
    """What a method that learns from class labels believes of these."""
    assert pairs.labels is not None
    distribution = beliefs.distribution.numpy()
    corrected = corrected_classes(pairs.labels, distribution)
    names = pairs.class_names
    columns: dict[str, Any] = {
        "given_label": [names[label] for label in pairs.labels],
        "corrected_label": [names[label] for label in corrected],
        "label_belief": belief,
        "confidence": beliefs.confidence.numpy(),
        "label_distribution": list(distribution),
        "given_class": pairs.labels,
        "corrected_class": corrected,
    }
    if pairs.true_labels is not None:
        columns["true_label"] = [names[label] for label in pairs.true_labels]
        columns["wrong_label"] = pairs.wrong_labels
        columns["true_class"] = pairs.true_labels
    return columns


def read_pair_table(path: Path, needed: Collection[str] = ()) -> Any:
    """The table of a run as arrow has it; one that an older version wrote gets the names and types of today.

    Args:
        needed: columns without which it is not the table that is asked for.

    Raises:
        RunFolderError: there is none, it cannot be read, it holds no pair, or a needed column is missing.
    """
    import pyarrow
    from pyarrow import parquet

    try:
        require_file(path)
        table = parquet.read_table(path, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise RunFolderError(f"{path.parent} holds no {path.name}; restore it from a copy") from error
    except (OSError, pyarrow.ArrowException) as error:
        raise RunFolderError(f"{path} cannot be read as Parquet ({error}); restore it from a copy") from error
    if "pair_id" in table.column_names and pyarrow.types.is_integer(table.schema.field("pair_id").type):
        table = renamed(table)
    missing = [name for name in needed if name not in table.column_names]
    if missing or not table.num_rows:
        found = f"lacks the column {missing[0]}" if missing else "holds no pair"
        raise RunFolderError(f"{path} {found}; it is not the table of a run")
    return typed(path, table)


def typed(path: Path, table: Any) -> Any:
    """The table with its columns of the types they are described with; raises RunFolderError where one holds others."""
    import pyarrow

    known = {name: COLUMNS[name] for name in table.column_names if name in COLUMNS and COLUMNS[name][0]}
    known |= {name: ("float32", "") for name in table.column_names if name.startswith("memory_")}
    for name, wanted in zip(known, described_schema(known), strict=True):
        try:
            column = table.column(name)
            if pyarrow.types.is_integer(wanted.type) and not pyarrow.types.is_integer(column.type):
                raise ValueError(f"it holds {column.type}")
            column = column.cast(wanted.type)
        except (pyarrow.ArrowException, ValueError) as error:
            raise RunFolderError(f"{path}: {name} is no {wanted.type} ({error}); restore it from a copy") from error
        if column.null_count:
            raise RunFolderError(f"{path}: {name} is missing for {column.null_count} pairs; restore it from a copy")
        table = table.set_column(table.column_names.index(name), wanted.with_nullable(True), column)
    return table


OLD_NAMES = {"image_id": "image", "text_id": "text", "belief": "p_match", "pair_id": "row"}


def renamed(table: Any) -> Any:
    """The table of a version whose `pair_id` was the row of the pair."""
    import pyarrow
    from pyarrow import compute

    columns = {OLD_NAMES.get(name, name): table.column(name) for name in table.column_names}
    columns["pair_id"] = compute.cast(columns["row"], pyarrow.string())
    if "taken_as_matched" in columns:
        columns["flagged"] = compute.invert(columns.pop("taken_as_matched"))
    if "label_belief" in columns:
        columns.pop("p_match", None)
    return pyarrow.table(columns)
