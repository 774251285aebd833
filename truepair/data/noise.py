"""Noise models: mismatch a chosen share of the pairs, and read and write the field's index files.

All but "nearest" permute, so some chosen entries may land on themselves. `Pairs.mismatch_rate` of the result is the
realised rate, `rate` only the nominal one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from truepair.data.index_files import read_index, write_index
from truepair.data.pairs import Array, IntArray, Pairs
from truepair.errors import InputError

NoiseKind = Literal["caption", "image", "class", "nearest"]
_AT_ONCE = 1024


def inject_noise(pairs: Pairs, rate: float, *, kind: NoiseKind = "caption", seed: int) -> Pairs:
    """The pairs with about `rate` (in [0, 1]) of them mismatched; `true_image` holds the truth.

    - "caption" (NCR): round(rate * N) of the N pairs are chosen and permute the images they point to.
    - "image" (DECL): round(rate * n) of the n images are chosen and permuted; all captions of an image move together.
    - "class": as "caption", but captions only move among pairs of one class (`labels`), which is far harder to see. A
      class of which one pair is chosen stays as it is.
    - "nearest": each chosen caption goes to the image most similar to its own, by the cosine of their standardised mean
      region features; no other is harder to see. Images whose captions are the same picture's stay different images.

    The truth stays what it was if it was known, else it is the image before the call. The result depends on
    `pairs`, `rate`, `kind` and `seed` (>= 0) alone.

    Raises:
        InputError: `rate`, `kind` or `seed` is out of range; there are no labels for "class", or no second image for
            "nearest".
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate}; expected a share from 0 (no pair) to 1 (every pair)")
    if seed < 0:
        raise InputError(f"seed is {seed}; expected a whole number of at least 0")
    rng = np.random.default_rng(seed)
    if kind == "caption":
        image_index = pairs.image_index[_partial_permutation(len(pairs), rate, rng)]
    elif kind == "image":
        image_index = _partial_permutation(len(pairs.images), rate, rng)[pairs.image_index]
    elif kind == "class":
        image_index = pairs.image_index[_permutation_within_classes(pairs, rate, rng)]
    elif kind == "nearest":
        chosen = rng.permutation(len(pairs))[: round(rate * len(pairs))]
        image_index = pairs.image_index.copy()
        image_index[chosen] = _nearest_images(pairs, image_index[chosen])
    else:
        raise InputError(f"noise kind is {kind!r}; expected one of {', '.join(get_args(NoiseKind))}")
    return replace(pairs, image_index=image_index, true_image=_truth(pairs))


def write_noise_index(pairs: Pairs, path: Path | str, *, layout: Literal["caption", "image"] = "caption") -> None:
    """Write which image each caption points to as an int64 .npy file that the field's released codes read.

    - "caption": int64[texts], entry t is the image of text t (NCR, BiCro, PC2, L2RM).
    - "image": int64[images], entry i is the image that the captions of image i point to (RCL).

    Images are numbered as the rows of the source's files, which may hold each image several times (`Images.copies`).

    Raises:
        InputError: the file exists with other content; a text stands in no pair or in several ("caption"); the truth
            is unknown or captions of one image point to different images ("image").
        TruepairError: the file cannot be written.
    """
    if layout == "caption":
        index = pairs.image_of_text
    elif layout == "image":
        index = _image_layout(pairs)
    else:
        raise InputError(f'noise index layout is {layout!r}; expected "caption" or "image"')
    copies = pairs.images.copies
    if copies > 1:  # the field's codes read the files as they are: the first row of the image is meant
        index = copies * (index if layout == "caption" else np.repeat(index, copies))
    write_index(path, index)


def apply_noise_index(pairs: Pairs, path: Path | str) -> Pairs:
    """The pairs with the images that an index file gives them; `true_image` holds the truth, as `inject_noise` does.

    The layout (see `write_noise_index`) follows from the length: one entry a text, or one an image. With as many
    texts as images it is read as one entry a text; where text i belongs to image i both mean the same.

    Raises:
        InputError: the file is missing, not a plain .npy file, not one row of whole numbers, of the wrong length, or
            an entry is not the number of an image.
    """
    truth, copies = _truth(pairs), pairs.images.copies
    texts, images = len(pairs.texts), len(pairs.images) * copies
    expected = f"expected {texts} whole numbers (one a caption) or {images} (one an image) for {pairs.name}, each the "
    expected += f"number of an image, 0 ... {images - 1}"
    made_for = "the index file made for this split of this data set"
    index = read_index(Path(path), expected, lengths=(texts, images), below=images, what="image", made_for=made_for)
    if len(index) == len(pairs.texts):
        image_index = index[pairs.text_index] // copies
    else:
        image_index = index[::copies][truth] // copies
    return replace(pairs, image_index=image_index, true_image=truth)


def _truth(pairs: Pairs) -> IntArray:
    return pairs.image_index if pairs.true_image is None else pairs.true_image


def _partial_permutation(size: int, rate: float, rng: np.random.Generator) -> IntArray:
    """0 ... size-1 in order, but round(rate * size) random entries permuted among themselves."""
    result = np.arange(size, dtype=np.int64)
    chosen = rng.permutation(result)[: round(rate * size)]
    result[chosen] = rng.permutation(chosen)
    return result


def _permutation_within_classes(pairs: Pairs, rate: float, rng: np.random.Generator) -> IntArray:
    """0 ... N-1 in order, but the chosen entries of each class exchanged in a ring."""
    if pairs.labels is None:
        raise InputError(
            f'{pairs.name}: noise of kind "class" exchanges captions within classes, and the pairs have no labels; '
            "name the column that holds them (label, --label)"
        )
    result = np.arange(len(pairs), dtype=np.int64)
    chosen = rng.permutation(result)[: round(rate * len(pairs))]
    for label in np.unique(pairs.labels[chosen]):
        ring = chosen[pairs.labels[chosen] == label]
        result[ring] = np.roll(ring, 1)
    return result


def _nearest_images(pairs: Pairs, wanted: IntArray) -> IntArray:
    """The most similar other image of each wanted one."""
    count = len(pairs.images)
    if count < 2:
        raise InputError(f'{pairs.name}: noise of kind "nearest" needs two images, and there is one')
    vectors = np.concatenate(
        [_mean_regions(pairs.images.features[at : at + _AT_ONCE]) for at in range(0, count, _AT_ONCE)]
    )
    vectors -= vectors.mean(axis=0)
    vectors /= np.maximum(vectors.std(axis=0), 1e-6)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    images, place = np.unique(wanted, return_inverse=True)
    nearest = np.empty(len(images), dtype=np.int64)
    for start in range(0, len(images), _AT_ONCE):
        rows = images[start : start + _AT_ONCE]
        similarity = vectors[rows] @ vectors.T
        similarity[np.arange(len(rows)), rows] = -np.inf
        nearest[start : start + _AT_ONCE] = similarity.argmax(axis=1)
    return np.asarray(nearest[place])


def _mean_regions(features: Array) -> Array:
    """(n, D) float32 of (n, R, D), the mean over regions that are not all zero; (n, D) as it is."""
    values = np.asarray(features, dtype=np.float32)
    if values.ndim == 2:
        return values
    there = values.any(axis=2).sum(axis=1, keepdims=True)
    return np.asarray(values.sum(axis=1) / np.maximum(there, 1))


def _image_layout(pairs: Pairs) -> IntArray:
    if pairs.true_image is None:
        raise InputError(
            f"{pairs.name}: the image layout needs the true image of each caption, which is unknown here; inject noise "
            'or apply an index file first, or write layout="caption"'
        )
    # Images nobody describes keep their own number.
    index = np.arange(len(pairs.images), dtype=np.int64)
    index[pairs.true_image] = pairs.image_index
    split_up = np.flatnonzero(index[pairs.true_image] != pairs.image_index)
    if len(split_up):
        pair = int(split_up[0])
        image = int(pairs.true_image[pair])
        raise InputError(
            f"{pairs.name}: captions of image {image} point to different images ({pairs.image_index[pair]} and "
            f"{index[image]}); the image layout has one entry an image. "
            'Write layout="caption", or inject noise of kind "image"'
        )
    return index
