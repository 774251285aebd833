"""`pairs.parquet`: what a method believes about every pair, for the audit and for people."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.data.pairs import Pairs
from truepair.files import write_bytes_atomically
from truepair.methods.base import Method


def write_beliefs(path: Path, pairs: Pairs, method: Method, memory: CorrespondenceMemory) -> None:
    """Write one row a pair, in the order of the pair table.

    Columns: pair_id, image_index, text_index, image_id, text_id, caption; belief in [0, 1] that the pair matches;
    division (clean, hard or noisy), the method's own, and taken_as_matched, the side of it that training trusts;
    memory_*, the method's per-pair fields; mismatched, where the truth is known.
    """
    import pyarrow
    from pyarrow import parquet

    columns: dict[str, Any] = {
        "pair_id": range(len(pairs)),
        "image_index": pairs.image_index,
        "text_index": pairs.text_index,
        "image_id": [pairs.images.ids[row] for row in pairs.image_index],
        "text_id": [pairs.texts.ids[row] for row in pairs.text_index],
        "caption": [pairs.texts.captions[row] for row in pairs.text_index],
        "belief": method.belief(memory).numpy(),
        "division": pyarrow.array([Part(part).name.lower() for part in method.division(memory).tolist()]),
        "taken_as_matched": method.taken_as_matched(memory).numpy(),
        **{f"memory_{name}": values.numpy() for name, values in memory.tensors().items()},
    }
    if pairs.mismatched is not None:
        columns["mismatched"] = pairs.mismatched
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer, compression="zstd")
    write_bytes_atomically(path, buffer.getvalue())
