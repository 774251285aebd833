"""`pairs.parquet`: what a method believes about every pair, for the audit and for people."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.data.pairs import Pairs
from truepair.evaluation.label_correction import corrected_classes
from truepair.files import write_bytes_atomically
from truepair.methods.base import LabelBeliefs, Method


def write_beliefs(path: Path, pairs: Pairs, method: Method, memory: CorrespondenceMemory) -> None:
    """Write one row a pair, in the order of the pair table.

    Columns: pair_id, image_index, text_index, image_id, text_id, caption; belief in [0, 1] that the pair matches;
    division (clean, hard or noisy), the method's own, and taken_as_matched, the side of it that training trusts;
    memory_*, the method's fields of one number a pair; mismatched, where the truth is known.

    A method that learns from class labels judges these instead: belief is then that in the given label, and
    `label_columns` are added.
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
        **{f"memory_{name}": values.numpy() for name, values in memory.tensors().items() if values.ndim == 1},
    }
    labels = method.label_beliefs(memory)
    if labels is not None:
        columns |= label_columns(pairs, labels, columns["belief"])
    if pairs.mismatched is not None:
        columns["mismatched"] = pairs.mismatched
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer, compression="zstd")
    write_bytes_atomically(path, buffer.getvalue())


def label_columns(pairs: Pairs, beliefs: LabelBeliefs, belief: Any) -> dict[str, Any]:
    """given_class and given_label (number and name); label_distribution, the probability of every class;
    corrected_class and corrected_label, its largest, or the given one where that is among them; label_belief in [0, 1]
    that the given label is right; confidence in [0, 1] of the correction; true_class, true_label and wrong_label, where
    the truth is known.
    """
    import pyarrow

    assert pairs.labels is not None
    distribution = beliefs.distribution.numpy()
    corrected = corrected_classes(pairs.labels, distribution)
    names = pairs.class_names
    columns: dict[str, Any] = {
        "given_class": pairs.labels,
        "given_label": [names[label] for label in pairs.labels],
        "corrected_class": corrected,
        "corrected_label": [names[label] for label in corrected],
        "label_belief": belief,
        "confidence": beliefs.confidence.numpy(),
        "label_distribution": pyarrow.array(list(distribution), pyarrow.list_(pyarrow.float32())),
    }
    if pairs.true_labels is not None:
        columns["true_class"] = pairs.true_labels
        columns["true_label"] = [names[label] for label in pairs.true_labels]
        columns["wrong_label"] = pairs.wrong_labels
    return columns
