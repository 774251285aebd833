"""Labelled feature files: an image vector, a text vector and one class for each pair (.mat, .npz, HDF5).

Validation is the file's own where it has one, else the first rows of its test part, as MRL does (Learning Cross-Modal
Retrieval with Noisy Labels, CVPR 2021): a third of them, rounded, unless `dev_pairs` says how many. A third is 231 of
the 693 of Wikipedia; MRL takes 5,000 of NUS-WIDE and 4,000 of XMediaNet.

An .npz file may hold names as well: `class_names`, of the labels 0, 1, …, and `{split}_image_ids`, `{split}_text_ids`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from truepair.data.collection import PairsCollection
from truepair.data.config import Reading
from truepair.data.formats.format import Format
from truepair.data.formats.labelled.feature_arrays import FEATURE_SUFFIXES, ArrayFile, open_arrays
from truepair.data.formats.labelled.feature_layouts import Part, find_parts
from truepair.data.pairs import Array, Images, IntArray, Pairs, Texts
from truepair.data.selection import Selection
from truepair.data.splits import plain_name
from truepair.errors import InputError

_MOST_CLASSES = 10_000  # of labels given as rows of zeros with a single one
_LARGEST_LABEL = 2**53  # whole numbers beyond are not exact as floating-point numbers, which MATLAB stores


@dataclass(frozen=True)
class LabelledFile:
    """A feature file whose layout is known and whose labels are read, before any feature is.

    Attributes:
        arrays, parts: the file and which of its arrays make which split.
        labels: split -> (n,) int64 class of each of its rows.
        class_names: of all classes in any split.
        name: for messages and reports.
        ids: split -> names of its images and of its texts, where they have names.
    """

    arrays: ArrayFile
    parts: dict[str, Part]
    labels: dict[str, IntArray]
    class_names: tuple[str, ...]
    name: str
    ids: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)


class LabelledCollection(PairsCollection):
    """One split of labelled features; it is written from its pairs, with the noise that was injected into them."""

    writable = True
    written_from_pairs = True

    def __init__(self, file: LabelledFile, split: str, dev_pairs: int | None) -> None:
        self.file, self.split, self.dev_pairs = file, plain_name(split), dev_pairs
        super().__init__(pairs_of(file, split, dev_pairs))

    def write(self, selection: Selection, folder: Path) -> None:
        """An .npz file of the kept pairs of the split, and of the other splits as they were; dev is a part of its own,
        also where it was carved from the test part. `weights.npy` is float32, a weight for each kept pair.
        """
        rows = selection.kept_rows
        arrays: dict[str, Array] = {"class_names": np.array(self.pairs.class_names)}
        for split in (split for split in splits_in(self.file) if split != self.split):
            arrays |= _arrays(pairs_of(self.file, split, self.dev_pairs), split)
        arrays |= _arrays(self.pairs.take(rows), self.split)
        np.savez(folder / f"{Path(self.file.name).stem}.npz", **arrays)  # type: ignore[arg-type]
        np.save(folder / "weights.npy", selection.weights[rows])


class LabelledFeatures(Format):
    """Files of labelled features."""

    holds = "features with labels of their own"
    understood = "a file of labelled features (.mat, .npz, .h5, .hdf5, .h5py)"
    options = frozenset({"dev_pairs"})
    vectors = True
    collection = LabelledCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        """Whether the name is that of a feature file, be it there or not."""
        path = Path(source)
        return path.suffix in FEATURE_SUFFIXES and not path.is_dir()

    def read(self, source: str | Path) -> LabelledFile:
        return _read(Path(source).resolve())

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return splits_in(self.read(source))

    def open(self, source: str | Path, split: str | None, reading: Reading) -> LabelledCollection:
        return LabelledCollection(self.read(source), split or "train", reading.dev_pairs)


def _read(path: Path) -> LabelledFile:
    """The layout and the labels of a feature file; names of arrays: `feature_layouts.py`.

    Classes are the distinct labels of all splits in ascending order, named by themselves. A class that occurs in test
    but not in training is kept. Labels are one number a row, or a row of zeros with a single one at the class. Where
    images and texts have labels of their own, the two must agree up to the number they start from.
    """
    arrays = open_arrays(path)
    parts = find_parts(path, arrays.names)
    values = {split: _part_labels(arrays, part) for split, part in parts.items()}
    classes = np.unique(np.concatenate(list(values.values())))
    labels = {split: np.searchsorted(classes, column).astype(np.int64) for split, column in values.items()}
    names = arrays.words("class_names")
    if names is not None and classes[0] >= 0 and classes[-1] < len(names):
        labels = {split: column.astype(np.int64) for split, column in values.items()}
    else:
        names = [str(number) for number in classes.tolist()]
    ids = {split: (arrays.words(f"{split}_image_ids"), arrays.words(f"{split}_text_ids")) for split in parts}
    named = {
        split: (images, texts)
        for split, (images, texts) in ids.items()
        if images is not None and texts is not None and len(images) == len(texts) == len(labels[split])
    }
    return LabelledFile(arrays, parts, labels, tuple(names), path.name, named)


def splits_in(file: LabelledFile) -> tuple[str, ...]:
    carved = "dev" not in file.parts and "test" in file.parts and round(len(file.labels["test"]) / 3) > 0
    return tuple(split for split in ("train", "dev", "test") if split in file.parts or (split == "dev" and carved))


def pairs_of(file: LabelledFile, split: str, dev_pairs: int | None = None) -> Pairs:
    """The pairs of one split."""
    _check_counts(file)
    split = plain_name(split)
    part, start, stop = _rows(file, split, dev_pairs)
    names = file.parts[part]
    images, texts = (_features(file.arrays, name, start, stop) for name in (names.images, names.texts))
    if part in file.ids:
        image_ids, text_ids = (tuple(ids[start:stop]) for ids in file.ids[part])
    else:
        image_ids = text_ids = tuple(f"{part} {row}" for row in range(start, stop))
    index = np.arange(stop - start, dtype=np.int64)
    return Pairs(
        images=Images(images, image_ids),
        texts=Texts(text_ids, text_ids, texts),
        image_index=index,
        text_index=index,
        labels=file.labels[part][start:stop],
        class_names=file.class_names,
        name=f"{file.name}/{split}",
    )


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


def _rows(file: LabelledFile, split: str, dev_pairs: int | None) -> tuple[str, int, int]:
    """The part that holds the split, and the rows of it: [start, stop)."""
    path = file.arrays.path
    own_dev = "dev" in file.parts
    if dev_pairs is not None and own_dev:
        raise InputError(f"{path} has a validation part of its own; leave out dev_pairs, which says how to carve one")
    tests = len(file.labels.get("test", ()))
    carved = 0 if own_dev else round(tests / 3) if dev_pairs is None else dev_pairs
    if dev_pairs is not None and not 0 < dev_pairs < tests:
        raise InputError(
            f"dev_pairs is {dev_pairs}; expected 1 … {tests - 1}, as it parts the {tests} test pairs of {path} into "
            "the first ones for validation and the others for the test"
        )
    if split == "test" and tests:
        return "test", carved, tests
    if split == "dev" and carved:
        return "test", 0, carved
    if split not in file.parts:
        raise InputError(f"{path} has no split {split!r}; it has {', '.join(splits_in(file))}")
    return split, 0, len(file.labels[split])


def _check_counts(file: LabelledFile) -> None:
    """Equal numbers of images, texts and labels in every part, and at least two classes to learn."""
    path = file.arrays.path
    for split, part in file.parts.items():
        labels = len(file.labels[split])
        for name in (part.images, part.texts):
            shape = file.arrays.shape(name)
            if len(shape) != 2 or 0 in shape:
                raise InputError(f"{path}: {name} has shape {shape}; expected (pairs, width), none of them 0")
            if shape[0] != labels:
                raise InputError(
                    f"{path}: {name} has {shape[0]} rows, but there are {labels} {split} labels; expected one row for "
                    "each pair. Check that the arrays belong together and are not transposed"
                )
    if len(np.unique(file.labels["train"])) < 2:
        only = file.class_names[int(file.labels["train"][0])]
        raise InputError(
            f"{path}: all {len(file.labels['train'])} training pairs are of one class ({only}); expected at least two "
            "classes. Check the labels"
        )


def _features(arrays: ArrayFile, name: str, start: int, stop: int) -> Array:
    """(stop - start, D) float16 or float32, every row finite and with a direction."""
    rows = arrays.read(name, start, stop)
    if rows.dtype not in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            rows = rows.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        values = rows[wrong[0]]
        found = f"holds {values[~np.isfinite(values)][0]}; expected finite numbers within float32"
    else:
        wrong = np.flatnonzero(~rows.any(axis=1))
        found = "is all zero, and a zero vector has no direction to compare"
    if len(wrong):
        raise InputError(
            f"{arrays.path}: {name}, row {start + int(wrong[0])} (from 0) {found}. {len(wrong)} of the rows {start} … "
            f"{stop - 1} are so: extract their features again or remove the pairs"
        )
    return rows


def _part_labels(arrays: ArrayFile, part: Part) -> IntArray:
    """(n,) int64 labels of a part as the file numbers them."""
    pairs = (arrays.shape(part.images) or (0,))[0]
    first, *others = ((name, _whole_numbers(arrays, name, pairs)) for name in part.labels)
    for name, labels in others:
        if len(labels) != len(first[1]):
            raise InputError(
                f"{arrays.path}: {first[0]} has {len(first[1])} labels and {name} {len(labels)}; expected one each for "
                "every pair"
            )
        # They may start at 0 for images and at 1 for texts: MRL subtracts the smallest label of each.
        differ = np.flatnonzero(labels - labels.min() != first[1] - first[1].min())
        if len(differ):
            row = int(differ[0])
            raise InputError(
                f"{arrays.path}, row {row} (from 0): {first[0]} says {first[1][row]} and {name} {labels[row]}; "
                f"expected one class a pair. {len(differ)} rows differ: repair the labels, or remove the wrong array"
            )
    return first[1]


def _whole_numbers(arrays: ArrayFile, name: str, pairs: int) -> IntArray:
    place, shape = f"{arrays.path}: {name}", arrays.shape(name)
    if math.prod(shape) > _MOST_CLASSES * max(1000, pairs):
        raise InputError(f"{place} has shape {shape}, for {pairs:,} images; expected one label for each pair")
    labels = arrays.read(name)
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim not in (1, 2) or labels.size == 0:
        raise InputError(f"{place} has shape {labels.shape}; expected one label for each pair")
    valid = np.isfinite(labels) & (np.abs(labels.astype(np.float64)) <= _LARGEST_LABEL)
    whole = valid & (np.where(valid, labels, 0.5) % 1 == 0)
    row = int(np.argmin(whole.reshape(len(labels), -1).all(axis=1)))
    if not whole.all():
        value = labels[row][~whole[row]][0] if labels.ndim == 2 else labels[row]
        raise InputError(
            f"{place}, row {row} (from 0) is {value}; expected a whole number, the class of the pair. Fill in or "
            "repair the label, or remove the pair"
        )
    if labels.ndim == 1:
        return labels.astype(np.int64)
    ones = (labels == 1).sum(axis=1)
    odd = np.flatnonzero((ones != 1) | ((labels != 0).sum(axis=1) != 1))
    if len(odd):
        raise InputError(
            f"{place} has shape {labels.shape}, and row {int(odd[0])} (from 0) is not all zero but for a single one; "
            f"expected exactly one class a pair ({len(odd)} rows are not so). Give one label a pair"
        )
    return np.asarray(labels.argmax(axis=1), dtype=np.int64)
