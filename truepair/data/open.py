"""`load`: from the name of a source to `Pairs`. One line a format; the formats themselves live in their own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from truepair.data.classes import keep_classes
from truepair.data.config import DataConfig
from truepair.data.formats.labelled.feature_files import feature_splits, is_feature_file, load_features
from truepair.data.formats.labelled.wikipedia import is_wikipedia, load_wikipedia, wikipedia_splits
from truepair.data.formats.precomp.precomp import load_precomp
from truepair.data.formats.precomp.precomp_files import available_splits
from truepair.data.formats.tables.picture_table import is_picture_table, load_picture_table, table_splits
from truepair.data.label_noise import apply_label_index, inject_label_noise
from truepair.data.noise import apply_noise_index, inject_noise
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError

SCENES_COUNTS = {"train": 2000, "dev": 500, "test": 500}
_SCENES_NAME = re.compile(r"scenes(?::(\d+))?(?::(\d+))?")


def load(source: str | Path, split: str = "train", *, label: str | None = None, dev_pairs: int | None = None) -> Pairs:
    """The pairs of one split of a source.

    Args:
        source: a folder in the field's "precomp" layout (`{split}_ims.npy`, `{split}_caps.txt`, …); a file of labelled
            features (.mat, .npz, .h5, .hdf5, .h5py: `feature_files.py`) or the Wikipedia folder (`wikipedia.py`); a
            folder of pictures with a .jsonl table (`picture_table.py`); or `scenes`, the built-in drawings;
            `scenes:500` has 500 training pictures instead of 2,000, `scenes:500:7` other ones.
        split: train, dev (or val), test (or testall).
        label: column of `{split}_meta.tsv` or of the table that gives each pair its class; None for no labels. Feature
            files have labels of their own.
        dev_pairs: for feature files without a validation part: how many test rows, the first ones, are for validation;
            None means a third.

    Raises:
        InputError: the source or split does not exist, or holds something that cannot be trained on; the message names
            file, row and remedy.
    """
    path = Path(source)
    if has_own_labels(source):
        if label is not None:
            raise InputError(f"{source} has its own labels; leave out the label option ({label!r})")
        read = load_wikipedia if is_wikipedia(path) else load_features
        return read(path, split, dev_pairs=dev_pairs)
    if dev_pairs is not None:
        raise InputError(f"dev_pairs is for files of labelled features, and {source} is none; leave it out")
    scenes = _SCENES_NAME.fullmatch(str(source))
    if scenes is None:
        read_folder = load_picture_table if is_picture_table(path) else load_precomp
        return read_folder(path, split, label=label)
    if label is not None:
        raise InputError("the scenes have no label column; leave out the label option")
    return _load_scenes(split, int(scenes[1] or SCENES_COUNTS["train"]), int(scenes[2] or 0))


def is_drawn(source: str | Path) -> bool:
    """Whether the source is the built-in drawings rather than a folder."""
    return _SCENES_NAME.fullmatch(str(source)) is not None


def has_own_labels(source: str | Path) -> bool:
    """Whether the source is one of labelled features, which take no label column."""
    return not is_drawn(source) and (is_wikipedia(Path(source)) or is_feature_file(Path(source)))


def splits_of(source: str | Path) -> tuple[str, ...]:
    """The names of the splits a source offers, those of which a file is missing included: `load` says which one."""
    path = Path(source)
    if is_drawn(source):
        return tuple(SCENES_COUNTS)
    if has_own_labels(source):
        return wikipedia_splits(path) if is_wikipedia(path) else feature_splits(path)
    return table_splits(path) if is_picture_table(path) else available_splits(path, complete=False)


def _load_scenes(split: str, train_count: int, seed: int) -> Pairs:
    split = {"val": "dev", "testall": "test"}.get(split, split)
    if split not in SCENES_COUNTS:
        raise InputError(f"scenes has no split {split!r}; it has {', '.join(SCENES_COUNTS)}")
    if train_count < 1:
        raise InputError("scenes needs at least one training picture; use scenes, or scenes:COUNT with COUNT ≥ 1")
    return _drawn(split, train_count if split == "train" else SCENES_COUNTS[split], seed)


@lru_cache(maxsize=4)
def _drawn(split: str, count: int, seed: int) -> Pairs:
    from truepair.data.formats.scenes.scenes import draw_scenes

    scenes = draw_scenes(count, seed=seed, split=split)
    for shared in (scenes.features, scenes.pictures):
        shared.flags.writeable = False
    per_image = len(scenes.captions[0])
    captions = tuple(caption for group in scenes.captions for caption in group)
    return Pairs(
        images=Images(scenes.features, tuple(scenes.ids), scenes.pictures),
        texts=Texts(captions, tuple(f"{image}#{k}" for image in scenes.ids for k in range(per_image))),
        image_index=np.repeat(np.arange(count, dtype=np.int64), per_image),
        text_index=np.arange(count * per_image, dtype=np.int64),
        name=f"scenes/{split}",
    )


@dataclass(frozen=True)
class Splits:
    """Training pairs, and the dev and test pairs where the source has them."""

    train: Pairs
    dev: Pairs | None
    test: Pairs | None


def load_splits(config: DataConfig, *, seed: int) -> Splits:
    """The splits a run needs, with the configured noise in the training pairs.

    In this order: classes with few training pairs are left out of all splits, a label index is applied to all training
    pairs that are left, the first `train_pairs` of them are taken, labels are drawn anew, images are mismatched.

    Raises:
        InputError: as `load`; or noise and an index file are both asked for.
    """
    if config.noise and config.noise_index:
        raise InputError("--noise and --noise-index both say how to mismatch the pairs; give one of them")
    if config.label_noise and config.label_noise_index:
        raise InputError("--label-noise and --label-noise-index both say which labels are wrong; give one of them")
    names = splits_of(config.source)
    train = _load_as(config, "train")
    dev, test = (
        next((_load_as(config, split) for split in either if split in names), None)
        for either in (("dev", "val"), ("test", "testall"))
    )
    if config.least_class_pairs is not None:
        train, (dev, test) = keep_classes(train, (dev, test), least=config.least_class_pairs)
    if config.label_noise_index:
        train = apply_label_index(train, Path(config.label_noise_index))
    if config.train_pairs is not None:
        train = train.take(np.arange(min(config.train_pairs, len(train))))
    noise_seed = seed if config.noise_seed is None else config.noise_seed
    if config.label_noise:  # without it nobody knows which labels are right: no truth is made up
        train = inject_label_noise(train, config.label_noise, kind=config.label_noise_kind, seed=noise_seed)
    if config.noise_index:
        train = apply_noise_index(train, Path(config.noise_index))
    elif config.noise:  # the same goes for the pairs
        train = inject_noise(train, config.noise, kind=config.noise_kind, seed=noise_seed)
    if config.oracle:
        train = train.matched_only()
    if config.score_images is not None:
        dev, test = (pairs and pairs.first_images(config.score_images) for pairs in (dev, test))
    return Splits(train, dev, test)


def _load_as(config: DataConfig, split: str) -> Pairs:
    return load(config.source, split, label=config.label, dev_pairs=config.dev_pairs)
