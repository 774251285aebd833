"""Pairs of known classes, made for tests: vectors around a centre of each class."""

import numpy as np

from truepair.data.pairs import Images, Pairs, Texts


def labelled_pairs(count, *, classes=4, wrong=0.0, seed=0, name="made", centres=0):
    """`count` pairs of vectors (6 and 5 wide), a share `wrong` of whose labels are moved to the next class."""
    rng = np.random.default_rng(centres)
    image_centres, text_centres = rng.normal(size=(classes, 6)), rng.normal(size=(classes, 5))
    rng = np.random.default_rng((seed, 1))
    truth = rng.permutation(np.arange(count, dtype=np.int64) % classes)
    images = (image_centres[truth] + 0.5 * rng.normal(size=(count, 6))).astype(np.float32)
    texts = (text_centres[truth] + 0.5 * rng.normal(size=(count, 5))).astype(np.float32)
    labels = truth.copy()
    moved = rng.permutation(count)[: round(wrong * count)]
    labels[moved] = (labels[moved] + 1) % classes
    names = tuple(str(row) for row in range(count))
    return Pairs(
        Images(images, names),
        Texts(names, names, texts),
        np.arange(count, dtype=np.int64),
        np.arange(count, dtype=np.int64),
        labels=labels,
        class_names=tuple(f"class {k}" for k in range(classes)),
        name=name,
        true_labels=truth,
    )
