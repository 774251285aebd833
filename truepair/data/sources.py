"""`load`: from the name of a source to `Pairs`. One line a format; the formats themselves live in their own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from truepair.data.config import DataConfig
from truepair.data.noise import apply_noise_index, inject_noise
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.precomp import load_precomp
from truepair.data.precomp_files import available_splits
from truepair.errors import InputError

SCENES_COUNTS = {"train": 2000, "dev": 500, "test": 500}
_SCENES_NAME = re.compile(r"scenes(?::(\d+))?(?::(\d+))?")


def load(source: str | Path, split: str = "train", *, label: str | None = None) -> Pairs:
    """The pairs of one split of a source.

    Args:
        source: a folder in the field's "precomp" layout (`{split}_ims.npy`, `{split}_caps.txt`, …), or `scenes`, the
            built-in drawings; `scenes:500` has 500 training pictures instead of 2,000, `scenes:500:7` other ones.
        split: train, dev (or val), test (or testall).
        label: column of `{split}_meta.tsv` that gives each pair its class; None for no labels.

    Raises:
        InputError: the source or split does not exist, or holds something that cannot be trained on; the message names
            file, row and remedy.
    """
    name = str(source)
    scenes = _SCENES_NAME.fullmatch(name)
    if scenes is None:
        return load_precomp(Path(source), split, label=label)
    if label is not None:
        raise InputError("the scenes have no label column; leave out the label option")
    return _load_scenes(split, int(scenes[1] or SCENES_COUNTS["train"]), int(scenes[2] or 0))


def is_drawn(source: str | Path) -> bool:
    """Whether the source is the built-in drawings rather than a folder."""
    return _SCENES_NAME.fullmatch(str(source)) is not None


def splits_of(source: str | Path) -> tuple[str, ...]:
    """The names of the splits a source offers, those of which a file is missing included: `load` says which one."""
    if is_drawn(source):
        return tuple(SCENES_COUNTS)
    return available_splits(Path(source), complete=False)


def _load_scenes(split: str, train_count: int, seed: int) -> Pairs:
    split = {"val": "dev", "testall": "test"}.get(split, split)
    if split not in SCENES_COUNTS:
        raise InputError(f"scenes has no split {split!r}; it has {', '.join(SCENES_COUNTS)}")
    if train_count < 1:
        raise InputError("scenes needs at least one training picture; use scenes, or scenes:COUNT with COUNT ≥ 1")
    return _drawn(split, train_count if split == "train" else SCENES_COUNTS[split], seed)


@lru_cache(maxsize=4)
def _drawn(split: str, count: int, seed: int) -> Pairs:
    from truepair.data.scenes import draw_scenes

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

    Raises:
        InputError: as `load`; or noise and an index file are both asked for.
    """
    if config.noise and config.noise_index:
        raise InputError("--noise and --noise-index both say how to mismatch the pairs; give one of them")
    names = splits_of(config.source)
    train = load(config.source, "train")
    if config.train_pairs is not None:
        train = train.take(np.arange(min(config.train_pairs, len(train))))
    if config.noise_index:
        train = apply_noise_index(train, Path(config.noise_index))
    elif config.noise:  # without it nobody knows which pairs match: no truth is made up
        noise_seed = seed if config.noise_seed is None else config.noise_seed
        train = inject_noise(train, config.noise, kind=config.noise_kind, seed=noise_seed)
    if config.oracle:
        train = train.matched_only()
    dev = next((load(config.source, split) for split in ("dev", "val") if split in names), None)
    test = next((load(config.source, split) for split in ("test", "testall") if split in names), None)
    if config.score_images is not None:
        dev, test = (pairs and pairs.first_images(config.score_images) for pairs in (dev, test))
    return Splits(train, dev, test)
