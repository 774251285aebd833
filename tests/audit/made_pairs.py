"""Small tables of pairs, made for tests."""

import numpy as np

from truepair.data.pairs import Images, Pairs, Texts

THINGS = ("cat", "dog", "car", "tree", "boat", "lamp", "cup", "hat")
COLOURS = ("red", "blue", "green", "black", "white", "brown")


def made_pairs(images, *, each=1, kinds=8, seed=0, regions=0, vectors=False, captions=None, truth=False):
    """Pairs of `kinds` kinds of things: features around one direction a kind, captions that name it."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, images)
    directions = rng.normal(size=(kinds, 12))
    shape = (images, regions, 12) if regions else (images, 12)
    features = (directions[kind] if not regions else directions[kind][:, None]) + 0.3 * rng.normal(size=shape)
    image_index = np.repeat(np.arange(images, dtype=np.int64), each)
    if captions is None:
        captions = [
            f"a {COLOURS[rng.integers(6)]} {THINGS[kind[image]]} number {row}" for row, image in enumerate(image_index)
        ]
    texts = directions[kind[image_index]] + 0.3 * rng.normal(size=(len(image_index), 12)) if vectors else None
    labels = kind[image_index].astype(np.int64)
    return Pairs(
        Images(features.astype(np.float32), tuple(f"image{row}" for row in range(images))),
        Texts(tuple(captions), tuple(f"text{row}" for row in range(len(captions))), texts),
        image_index,
        np.arange(len(image_index), dtype=np.int64),
        labels=labels if truth else None,
        class_names=THINGS[:kinds] if truth else (),
        true_image=np.roll(image_index, 1) if truth else None,
        true_labels=labels if truth else None,
    ), kind
