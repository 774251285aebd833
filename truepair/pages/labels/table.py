"""What a finished run holds about the class label of every pair, read from its folder and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError, RunFolderError
from truepair.evaluation.label_correction import corrected_classes
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder

NEEDED = (
    "pair_id", "row", "image_index", "image", "text", "caption", "given_class", "label_belief", "confidence",
    "label_distribution",
)  # fmt: skip

ROUNDING = 1e-5  # by which a sum of float32 probabilities may exceed 1


@dataclass(frozen=True)
class LabelTable:
    """N pairs, K classes.

    Attributes:
        classes: their names.
        pair_id, image, text, caption: one of each per pair.
        row, image_index: (N,) int64.
        given: (N,) int64, the class as given.
        belief: (N,) in [0, 1], how probable the given label is held to be.
        confidence: (N,) in [0, 1], how sure the corrected label is.
        distribution: (N, K) float32, how probable each class is held to be.
        truth: (N,) int64, the class the pair really has; None where unknown.
    """

    classes: tuple[str, ...]
    pair_id: tuple[str, ...]
    row: IntArray
    image_index: IntArray
    image: tuple[str, ...]
    text: tuple[str, ...]
    caption: tuple[str, ...]
    given: IntArray
    belief: Array
    confidence: Array
    distribution: Array
    truth: IntArray | None

    def __len__(self) -> int:
        return len(self.pair_id)

    @cached_property
    def corrected(self) -> IntArray:
        """(N,) int64, see `corrected_classes`."""
        return corrected_classes(self.given, self.distribution)

    @cached_property
    def suspicion(self) -> Array:
        """(N,) float64 in [0, 1]: confidence × (1 − belief in the given label)."""
        return self.confidence.astype(np.float64) * (1 - self.belief.astype(np.float64))

    @cached_property
    def order(self) -> IntArray:
        """(N,) rows, most suspicious first: changed labels before kept ones, then by suspicion, then by row."""
        return np.lexsort((self.row, -self.suspicion, self.corrected == self.given))


def suspect_facts(table: LabelTable, row: int) -> dict[str, Any]:
    """What there is to say of one label, as labels.json has it."""
    return {
        **{name: getattr(table, name)[row] for name in ("pair_id", "image", "text", "caption")},
        "given": table.classes[table.given[row]],
        "proposed": table.classes[table.corrected[row]],
        "suspicion": float(table.suspicion[row]),
        "label_belief": float(table.belief[row]),
        "confidence": float(table.confidence[row]),
        "truth": None if table.truth is None else table.classes[table.truth[row]],
    }


def read_label_table(folder: RunFolder) -> LabelTable:
    """The label table of a finished run of a method that learns from class labels."""
    from pyarrow import ArrowException

    config = folder.read_config()
    if not folder.finished:
        raise RunFolderError(
            f"{folder.path} holds an unfinished run; continue it with: truepair train --resume {folder.path}"
        )
    table = read_pair_table(folder.pairs)
    missing = [name for name in NEEDED if name not in table.column_names]
    if missing or not config.get("classes"):
        method = (config.get("method") or {}).get("name")
        raise InputError(
            f"{folder.path} was trained with --method {method} and holds nothing about class labels; labels are "
            "inspected of runs that learn from them, such as --method uot-rcl"
        )
    try:
        return _checked(table, tuple(config["classes"]))
    except (ValueError, TypeError, ArrowException) as error:  # InputError is a ValueError
        raise RunFolderError(f"{folder.pairs} does not fit its run ({error}); restore it from a copy") from error


def _checked(columns: Any, classes: tuple[str, ...]) -> LabelTable:
    """The columns of an arrow table as arrays. Raises ValueError or TypeError: a value is missing or out of range."""
    table = LabelTable(
        classes=classes,
        **{name: tuple(map(str, columns[name].to_pylist())) for name in ("pair_id", "image", "text", "caption")},
        row=_whole("row", columns, None),
        image_index=_whole("image_index", columns, None),
        given=_whole("given_class", columns, len(classes)),
        belief=_share("label_belief", columns),
        confidence=_share("confidence", columns),
        distribution=_distribution(columns["label_distribution"], len(classes)),
        truth=_whole("true_class", columns, len(classes)) if "true_class" in columns.column_names else None,
    )
    _ = table.corrected
    return table


def _distribution(column: Any, classes: int) -> Array:
    """(N, K) float32 of lists, without a Python object for every number."""
    from pyarrow import compute

    lengths = compute.list_value_length(column).to_numpy()
    if not len(lengths) or (lengths != classes).any():
        raise InputError(f"label_distribution does not hold {classes} numbers for each of {len(lengths)} pairs")
    values: Array = column.combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    return values.reshape(-1, classes)


def _whole(name: str, columns: Any, classes: int | None) -> IntArray:
    values: Array = columns[name].to_numpy()
    if values.dtype.kind not in "iu" or (values < 0).any() or (classes is not None and (values >= classes).any()):
        expected = "whole numbers from 0 on" if classes is None else f"classes in 0 … {classes - 1}"
        raise InputError(f"{name} is not {expected} throughout")
    return values.astype(np.int64)


def _share(name: str, columns: Any) -> Array:
    values: Array = columns[name].to_numpy().astype(np.float32)
    outside = np.flatnonzero(~((values >= 0) & (values <= 1 + ROUNDING)))
    if len(outside):
        raise InputError(f"{name}[{outside[0]}] is {values[outside[0]]}; expected a value in [0, 1]")
    return np.minimum(values, 1)
