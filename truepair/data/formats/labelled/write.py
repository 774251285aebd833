"""Labelled features in, an .npz file of them out: the kept pairs of the split, the other splits as they were.

The arrays are `{split}_images`, `{split}_texts`, `{split}_labels` for train, dev and test: dev is a part of its own,
also where it was carved from the test part. Beside them lie the names of classes, images and texts, so that the file
gives the same pairs again. `weights.npy` is float32, a weight for each kept pair.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.data.formats.embeddings.npy import write_npy
from truepair.data.formats.labelled.feature_files import LabelledCollection, pairs_of, splits_in
from truepair.data.pairs import Array, Pairs
from truepair.data.selection import Selection


def write_labelled(collection: LabelledCollection, selection: Selection, folder: Path) -> None:
    """Writes `<name of the source>.npz` and the weights into the folder."""
    file, rows = collection.file, selection.kept_rows
    arrays: dict[str, Array] = {"class_names": np.array(file.class_names)}
    for split in splits_in(file):
        if split == collection.split:
            arrays |= _arrays(collection.pairs.take(rows), split)
        else:
            arrays |= _arrays(pairs_of(file, split, dev_pairs=collection.dev_pairs), split)
    np.savez(folder / f"{Path(file.name).stem}.npz", **arrays)  # type: ignore[arg-type]
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
