"""Splits, in one place: what the field calls them, and fractions drawn from a seed where a source has none."""

from __future__ import annotations

import math
from collections.abc import Collection as Sized
from typing import TYPE_CHECKING

import numpy as np

from truepair.data.repeats import first_copies
from truepair.device import check_memory
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.pairs import Pairs

NAMES = {
    "train": ("train", "restval"),
    "dev": ("dev", "val", "valid", "validation"),
    "test": ("test", "testall"),
}
"""What releases call the three splits. COCO's `restval` (Karpathy) is read with `train`, as the field does."""

_ITSELF = ("restval", "testall")
"""Who asks for one of these does not mean `train` or `test`: COCO's `testall` is five times its `test`."""


def plain_name(split: str) -> str:
    """ "train", "dev" or "test" for any of their names; other names as they are."""
    return next((plain for plain, names in NAMES.items() if split in names), split)


def named(split: str, available: Sized[str]) -> tuple[str, ...]:
    """Which of the available splits are meant: the one of that name, else one of another name for it; none: ()."""
    names = (split,) if split in _ITSELF else NAMES.get(plain_name(split), (split,))
    found = [name for name in (split, *names) if name in available][:1]
    if split == "train" and "restval" in available:
        found = list(dict.fromkeys([*found, "restval"]))
    return tuple(found)


def take_share(pairs: Pairs, split: str, dev_share: float | None, test_share: float | None, *, seed: int) -> Pairs:
    """The pairs of a split of a source that has none: its images are dealt out by chance, no image to two splits.

    Nor are images of equal features: all go where the first of them goes. Images that a model was trained on, under
    another name, would flatter its figures.

    Args:
        dev_share, test_share: of the images, in [0, 1); None for no such split. What is left is "train". Where images
            are equal a split can be a few larger or smaller.
        seed: of the draw, which depends on it, the number of images and which are equal; the order of the source stays.
    """
    from truepair.seeding import generator

    images = len(pairs.images)
    order = generator(seed, "splits").permutation(images)
    dev, test = (round((share or 0) * images) for share in (dev_share, test_share))
    part = {"dev": order[:dev], "test": order[dev : dev + test], "train": order[dev + test :]}[plain_name(split)]
    features = pairs.images.features  # those of pictures lie on the disk, a share of them is copied
    part = np.flatnonzero(np.isin(first_copies(features), part))
    rows = np.flatnonzero(np.isin(pairs.image_index, part))
    if not len(rows):
        raise InputError(f"{pairs.name}: {images} images are too few for these shares, {split} gets none of them")
    needed = len(part) * features.itemsize * math.prod(features.shape[1:])
    what = f"{pairs.name}: {split}, {len(part):,} of its images (splits of its own would stay on the disk)"
    check_memory(needed, what)
    return pairs.take(rows).compact()


def check_shares(source: object, split: str, dev_share: float | None, test_share: float | None) -> None:
    """Refuse, before a source without splits is read, shares that cannot be drawn, or a split without a share."""
    for option, share in (("--dev-share", dev_share), ("--test-share", test_share)):
        if share is not None and not 0 < share < 1:
            raise InputError(f"{option} is {share}; expected a share of the images above 0 and below 1")
    if (dev_share or 0) + (test_share or 0) >= 1:
        raise InputError("--dev-share and --test-share leave no image to train on; expected less than 1 together")
    if plain_name(split) != "train" and {"dev": dev_share, "test": test_share}.get(plain_name(split)) is None:
        raise InputError(
            f"{source} has no split {split!r}, nor any other; ask for a share of its images instead (--dev-share, "
            "--test-share; a run is to be trained with these), or for the split train, which is all of it"
        )
