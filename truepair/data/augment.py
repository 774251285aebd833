"""CRCL's augmentation: drop some regions of an image, alter some words of a caption. Nothing is changed in place.

Source: the released code of CRCL (Cross-modal Active Complementary Learning, NeurIPS 2023), which its numbers need;
that code drops regions in the loaded array itself, so its features decay from epoch to epoch. Here the input stays.
"""

from __future__ import annotations

import numpy as np
import torch

from truepair.data.batch import ImageBatch
from truepair.data.pairs import Array, IntArray
from truepair.data.text import Vocabulary
from truepair.errors import InputError

# Of the words that are altered: 50 % masked, 10 % replaced, the remaining 40 % dropped.
_MASKED = 0.5
_REPLACED = 0.1


def drop_regions(
    features: Array, lengths: IntArray | None = None, *, share: float = 0.2, rng: np.random.Generator
) -> ImageBatch:
    """The batch with each region dropped with probability `share` (in [0, 1]); at least one of each image stays.

    Args:
        features: (B, R, D) float16 or float32; never written to.
        lengths: (B,) regions each image has, in [1, R]; None means R. Regions beyond stay out.
        share: 0 keeps everything.
        rng: where the randomness comes from.

    Returns:
        The regions kept, in their order from the left, as float32, zero beyond; its width is the largest number kept.

    Raises:
        InputError: `share`, the shape of `features` or `lengths` is out of range.
    """
    _check_share(share)
    if features.ndim != 3 or 0 in features.shape:
        raise InputError(f"features have shape {features.shape}; expected (images, regions, width), none of them 0")
    images, regions, width = features.shape
    counts = np.full(images, regions) if lengths is None else np.asarray(lengths)
    if counts.shape != (images,) or counts.min() < 1 or counts.max() > regions:
        raise InputError(f"lengths are {counts.tolist()}; expected {images} whole numbers from 1 to {regions}")

    present = np.arange(regions) < counts[:, None]
    kept = present & (rng.random((images, regions)) >= share)
    # A survivor is drawn for every image, needed or not, so that the stream of numbers does not depend on the outcome.
    survivor = (rng.random(images) * counts).astype(np.int64)
    lost = np.flatnonzero(~kept.any(axis=1))
    kept[lost, survivor[lost]] = True

    kept_counts = kept.sum(axis=1)
    packed = np.zeros((images, int(kept_counts.max()), width), dtype=np.float32)
    position = kept.cumsum(axis=1) - 1
    image, region = np.nonzero(kept)
    packed[image, position[image, region]] = features[image, region]
    return ImageBatch(torch.from_numpy(packed), torch.from_numpy(kept_counts.astype(np.int64)))


def alter_words(words: list[int], vocabulary: Vocabulary, *, share: float = 0.2, rng: np.random.Generator) -> list[int]:
    """A new list in which each word but the first (start) and the last (end) is altered with probability `share`.

    Of these words half become `<mask>`, a tenth a random ordinary word of the vocabulary (by chance the same
    word), and the others are dropped. If no word is left, one `<unk>` stands between start and end, as in the encoding
    of a caption without any word, so the length is at least 3.

    Raises:
        InputError: `share` is not in [0, 1], or `words` has fewer than two entries.
    """
    _check_share(share)
    if len(words) < 2:
        raise InputError(f"a caption has the word ids {words}; expected at least start and end: use Vocabulary.encode")
    # Below `share` a word is altered, and where in [0, share) the number lies decides how.
    draws = rng.random(len(words) - 2)
    altered = [words[0]]
    for word, draw in zip(words[1:-1], draws, strict=True):
        if draw >= share:
            altered.append(word)
        elif draw < share * _MASKED:
            altered.append(vocabulary.mask)
        elif draw < share * (_MASKED + _REPLACED):
            ordinary = vocabulary.ordinary or (vocabulary.unknown,)
            altered.append(ordinary[int(rng.integers(len(ordinary)))])
    if len(altered) == 1:
        altered.append(vocabulary.unknown)
    altered.append(words[-1])
    return altered


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}; expected a probability from 0 to 1")
