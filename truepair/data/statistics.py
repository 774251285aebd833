"""Counts over the two sides of a data set, in pieces where it is large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np

from truepair.data.collection import Collection, EmbeddingCollection, Problem
from truepair.data.description import MOST_PROBLEMS, CaptionStatistics, ImageStatistics, Range, SplitDescription
from truepair.data.embedding_rows import EmbeddingRows, RowProblem, same_length
from truepair.data.formats.precomp.precomp_files import chunks
from truepair.data.pairs import Array, Pairs
from truepair.data.text import tokenise

_ROWS_AT_ONCE = 65_536
_MOST_COMPARED = 2_000_000
"""Images or captions among which repeated ones are looked for, the first ones: they take some 100 bytes each."""


class Side:
    """One side of embeddings as far as an array: it has a shape, and ranges of rows that are read when asked for."""

    ndim, dtype = 2, np.dtype(np.float32)

    def __init__(self, collection: EmbeddingCollection, side: int) -> None:
        self.collection, self.side = collection, side
        self.shape = (len(collection), collection.width)
        self.nbytes = 4 * self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        return self.collection.read_side(self.side, *rows.indices(len(self))[:2])


def describe_collection(collection: Collection) -> SplitDescription:
    """What a collection holds and the entries of it that cannot be used; embeddings are read in ranges."""
    problems = sorted(collection.problems, key=lambda problem: problem.used)
    if not isinstance(collection, EmbeddingCollection):
        return _with_problems(describe_pairs(collection.load()), problems, len(problems))
    described, bad, count = _describe_embeddings(collection)
    rows = [collection.row_problem(entry) for entry in bad]
    return _with_problems(
        described, sorted([*problems, *rows], key=lambda problem: problem.used), count + len(problems)
    )


def _with_problems(described: SplitDescription, problems: Sequence[Problem], count: int) -> SplitDescription:
    return replace(described, problems=tuple(problems[:MOST_PROBLEMS]), problem_count=count)


def _describe_embeddings(collection: EmbeddingCollection) -> tuple[SplitDescription, list[RowProblem], int]:
    """What embeddings hold, the first rows of them that cannot be used, and how many there are."""
    images, texts = Side(collection, 0), Side(collection, 1)
    ranges = range(0, len(collection), _ROWS_AT_ONCE)
    captions = (caption for start in ranges for caption in collection.captions(start, start + _ROWS_AT_ONCE))
    noted, bad, count = EmbeddingRows(), list[RowProblem](), 0
    for start in ranges:
        stop = min(start + _ROWS_AT_ONCE, len(collection))
        _, found = noted.add(*collection.read(start, stop), collection.image_names(start, stop))
        bad, count = [*bad, *found][:MOST_PROBLEMS], count + len(found)
    index = noted.images()
    described = SplitDescription(
        name=collection.name,
        images=image_statistics(images),
        captions=caption_statistics(captions),
        captions_per_image=range_of(Counter(np.bincount(index).tolist())),
        text_features=image_statistics(texts),
        copies=1 if count else same_length(index),
    )
    return described, bad, count


def describe_pairs(pairs: Pairs) -> SplitDescription:
    classes = [] if pairs.labels is None else np.bincount(pairs.labels, minlength=len(pairs.class_names)).tolist()
    return SplitDescription(
        name=pairs.name,
        images=image_statistics(pairs.images.features),
        captions=caption_statistics(pairs.texts.captions),
        captions_per_image=range_of(Counter(np.bincount(pairs.image_index, minlength=len(pairs.images)).tolist())),
        label_columns={} if pairs.labels is None else {"labels": len(np.unique(pairs.labels))},
        mismatch_rate=pairs.mismatch_rate,
        text_features=image_statistics(pairs.texts.features),
        class_counts=dict(zip(pairs.class_names, classes, strict=True)),
        label_noise_rate=pairs.label_noise_rate,
        copies=pairs.images.copies,
    )


def image_statistics(features: Any) -> ImageStatistics | None:
    """Of an array, or of what has its shape and gives ranges of rows; None for None."""
    if features is None:
        return None
    zero_images = zero_regions = repeated = not_finite = 0
    example: tuple[int, int] | None = None
    seen: dict[bytes, int] = {}
    # Other types and shapes are a problem of their own and have no images to count.
    countable = features.dtype.kind in "fiu" and features.ndim in (2, 3) and 0 not in features.shape
    for start, rows in chunks(features) if countable else ():
        regions = rows.reshape(len(rows), -1, rows.shape[-1])
        zero = np.asarray(~regions.any(axis=2))
        zero_regions += int(zero.sum())
        zero_images += int(zero.all(axis=1).sum())
        not_finite += int((~np.isfinite(regions).all(axis=(1, 2))).sum())
        for row, image in enumerate(np.ascontiguousarray(rows), start=start):
            digest = blake2b(image, digest_size=16).digest()
            first = seen.get(digest, row) if row >= _MOST_COMPARED else seen.setdefault(digest, row)
            if first != row:
                repeated += 1
                example = example or (first, row)
    return ImageStatistics(
        count=len(features) if features.shape else 0,
        shape=features.shape,
        dtype=str(features.dtype),
        bytes=features.nbytes,
        zero_images=zero_images,
        zero_regions=zero_regions,
        repeated=repeated,
        repeated_example=example,
        not_finite=not_finite,
    )


def caption_statistics(captions: Iterable[str]) -> CaptionStatistics:
    words, uses, lengths = Counter[str](), Counter[str](), Counter[int]()
    empty = 0
    for count, caption in enumerate(captions):
        found = tokenise(caption)
        words.update(found)
        lengths[len(found)] += 1
        if not caption.strip():
            empty += 1
        elif count < _MOST_COMPARED or caption in uses:
            uses[caption] += 1
    most = uses.most_common(1)
    return CaptionStatistics(
        count=lengths.total(),
        empty=empty,
        words=range_of(lengths),
        distinct_words=len(words),
        distinct_words_4=sum(count >= 4 for count in words.values()),
        repeated=uses.total() - len(uses),
        repeated_example=most[0] if most and most[0][1] > 1 else None,
    )


def range_of(counts: Counter[int]) -> Range | None:
    """Of values, by how often each occurs."""
    if not counts:
        return None
    mean = sum(value * times for value, times in counts.items()) / counts.total()
    return Range(min(counts), mean, max(counts))


def nothing_to_learn(pairs: Pairs) -> list[str]:
    """Why no model can tell these pairs apart, a sentence for each reason; usually none, and found at once.

    Pairs of which one side never differs are trained on all the same, with a warning.
    """
    reasons = [_sameness(f"{pairs.name}: all images", pairs.images.features)]
    if pairs.texts.features is not None:
        reasons.append(_sameness(f"{pairs.name}: all texts", pairs.texts.features))
    else:
        captions = iter(pairs.texts.captions)
        words = tokenise(next(captions))
        if all(tokenise(caption) == words for caption in captions):
            reasons.append(f"{pairs.name}: all captions have the same words ({' '.join(words)[:60]!r})")
    return [f"{reason}; nothing can be learned from these pairs, look at their source" for reason in reasons if reason]


def _sameness(what: str, features: Array) -> str:
    if features[0].size == 1:
        return f"{what} are described by a single number, of which a unit vector keeps the sign alone"
    first = np.asarray(features[:1])
    if any((rows != first).any() for _, rows in chunks(features)):
        return ""
    return f"{what} are described by {'the same numbers' if first.any() else 'zeros'}"
