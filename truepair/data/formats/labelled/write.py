"""Labelled features in, an .npz file of them out: the kept pairs of the split, the other splits as they were.

The arrays are `{split}_images`, `{split}_texts`, `{split}_labels` for train, dev and test: dev is a part of its own,
also where it was carved from the test part. Beside them lie the names of classes, images and texts, so that the file
gives the same pairs again. `weights.npy` is float32, a weight for each kept pair.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.data.formats.embeddings.npy import write_npy
from truepair.data.pairs import Array, Pairs
from truepair.data.selection import Selection


def write_labelled(name: str, splits: dict[str, Pairs], split: str, selection: Selection, folder: Path) -> None:
    """Writes `<name>.npz` and the weights into the folder; the selection is of the pairs of one of the splits."""
    rows = selection.kept_rows
    arrays: dict[str, Array] = {"class_names": np.array(splits[split].class_names)}
    for part, pairs in splits.items():
        arrays |= _arrays(pairs.take(rows) if part == split else pairs, part)
    np.savez(folder / f"{name}.npz", **arrays)  # type: ignore[arg-type]
    write_npy(folder / "weights.npy", (len(rows),), np.float32, [selection.weights[rows]])


def _arrays(pairs: Pairs, split: str) -> dict[str, Array]:
    images, texts = pairs.images, pairs.texts
    assert texts.features is not None
    assert pairs.labels is not None
    return {
        f"{split}_images": images.features[pairs.image_index],
        f"{split}_texts": texts.features[pairs.text_index],
        f"{split}_labels": pairs.labels,
        f"{split}_image_ids": np.array([images.ids[row] for row in pairs.image_index]),
        f"{split}_text_ids": np.array([texts.ids[row] for row in pairs.text_index]),
    }
