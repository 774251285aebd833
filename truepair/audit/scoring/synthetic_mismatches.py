"""Pairs mismatched on purpose: what a mismatched pair scores like, learned from pairs that are known to be one.

Two kinds, because mismatches differ: `random`, an image with any other caption; `near`, an image with the caption of a
pair that is like its own (of the same kind of thing, as far as words and features tell), which is far harder to see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array, IntArray, Pairs
from truepair.seeding import generator

KINDS = ("random", "near")
NEAREST, NEAREST_IN_SPACE = 0.02, 0.05
"""How near: a caption of the two per cent of pairs that are most alike. On `fashion_precomp` these score like captions
of the same article type (each tenth of their scores holds 0.85 to 1.24 tenths of those). In the very
space that is to score them it takes five per cent: the two nearest there would nearly match."""

FEWEST_NEAREST = 5
TRIES = 50
MOST_CANDIDATES = 20_000
ROWS_AT_ONCE = 256
WORDS_KEPT = 20_000
WIDTH = 64


@dataclass(frozen=True)
class Mismatches:
    """n pairs of a kind (of `KINDS`) that are mismatched on purpose: the image of one given pair, the caption of
    another, told by their numbers, (n,) int64 each.
    """

    kind: str
    image_of: IntArray
    caption_of: IntArray

    def __len__(self) -> int:
        return len(self.image_of)


def draw_mismatches(
    kind: str,
    rows: IntArray,
    count: int,
    *,
    images: IntArray,
    captions: list[str],
    described: Array | None,
    rng: np.random.Generator,
    nearest: float = NEAREST,
) -> Mismatches:
    """Mismatch up to `count` of the given pairs `rows` among themselves.

    A caption is never one that the image has, nor the same words but for case and spaces. Pairs for which none is found
    in a few tries are left out.

    Args:
        images: (len(rows),) number of the image of each row.
        captions: (len(rows),) words of each row.
        described: (len(rows), D) unit rows that tell how alike pairs are; only needed for `near`.
        nearest: share of the pairs, the most alike ones, that a near caption is drawn from.
    """
    words = [" ".join(caption.split()).casefold() for caption in captions]
    said: dict[int, set[str]] = {}
    for image, caption in zip(images.tolist(), words, strict=True):
        said.setdefault(image, set()).add(caption)
    chosen = rng.permutation(len(rows))[:count] if len(set(words)) > 1 else np.empty(0, dtype=np.int64)
    near = None
    if kind == "near" and len(chosen):
        assert described is not None
        near = most_alike(described, chosen, rng, nearest)
    other = np.full(len(chosen), -1, dtype=np.int64)
    for _ in range(TRIES):
        missing = np.flatnonzero(other < 0)
        if not len(missing):
            break
        if near is None:
            drawn = rng.integers(0, len(rows), len(missing))
        else:
            drawn = near[missing, rng.integers(0, near.shape[1], len(missing))]
        for place, candidate in zip(missing.tolist(), drawn.tolist(), strict=True):
            if words[candidate] not in said[int(images[chosen[place]])]:
                other[place] = candidate
    found = other >= 0
    return Mismatches(kind, rows[chosen[found]], rows[other[found]])


def mismatched_pairs(
    pairs: Pairs,
    rows: IntArray,
    kind: str,
    count: int,
    described: Array | None,
    rng: np.random.Generator,
    nearest: float = NEAREST,
) -> Mismatches:
    """`draw_mismatches` among some of the pairs; `described` is of these rows."""
    captions = [pairs.texts.captions[text] for text in pairs.text_index[rows].tolist()]
    images = pairs.image_index[rows]
    return draw_mismatches(
        kind, rows, count, images=images, captions=captions, described=described, rng=rng, nearest=nearest
    )


def most_alike(described: Array, chosen: IntArray, rng: np.random.Generator, nearest: float = NEAREST) -> IntArray:
    """(len(chosen), k) places of the pairs most like each chosen one, in no order, itself not among them."""
    pool = np.arange(len(described))
    if len(pool) > MOST_CANDIDATES:
        pool = np.sort(rng.choice(pool, MOST_CANDIDATES, replace=False))
    count = min(max(FEWEST_NEAREST, round(nearest * len(pool))), len(pool) - 1)
    candidates = described[pool].T
    found = np.empty((len(chosen), count), dtype=np.int64)
    for start in range(0, len(chosen), ROWS_AT_ONCE):
        some = chosen[start : start + ROWS_AT_ONCE]
        unlike = -(described[some] @ candidates)
        unlike[some[:, None] == pool[None, :]] = np.inf
        found[start : start + ROWS_AT_ONCE] = pool[np.argpartition(unlike, count - 1, axis=1)[:, :count]]
    return found


def described_pairs(pairs: Pairs, *, seed: int) -> Array:
    """(N, D) float32 unit rows: what a pair is like, by its words and its features, half and half.

    Words: the 64 main directions of tf-idf (latent semantic analysis); features: those of the mean region, or of the
    vector. No network: it must be known before one is trained.
    """
    sides = [main_directions(flat(pairs.images.features), seed)[pairs.image_index]]
    if pairs.texts.features is None:
        sides.append(word_directions(pairs.texts.captions, seed)[pairs.text_index])
    else:
        sides.append(main_directions(flat(pairs.texts.features), seed)[pairs.text_index])
    return np.concatenate(sides, axis=1) / np.float32(np.sqrt(2))


def flat(features: Array) -> Array:
    """Features as one row an item; those of regions thinned out where there are very many numbers."""
    width = int(np.prod(features.shape[1:]))
    every = max(1, width // 1024) if features.ndim > 2 else 1
    return np.asarray(features.reshape(len(features), width)[:, ::every], dtype=np.float32)


def main_directions(rows: Array, seed: int) -> Array:
    """(n, ≤ 64) unit rows: the main directions of some rows; zeros where all are the same."""
    from sklearn.decomposition import PCA

    count = min(WIDTH, *rows.shape)
    if (rows == rows[:1]).all():  # none differs from the others
        return np.zeros((len(rows), 1), dtype=np.float32)
    state = int(generator(seed, "audit main directions").integers(2**31))
    return unit(PCA(count, svd_solver="randomized", random_state=state).fit_transform(rows))


def word_directions(captions: tuple[str, ...], seed: int) -> Array:
    """(n, ≤ 64) unit rows by the words of captions; zeros for those without words others have."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        counted = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=WORDS_KEPT).fit_transform(captions)
    except ValueError:  # no word occurs twice
        return np.zeros((len(captions), 1), dtype=np.float32)
    if counted.shape[1] <= WIDTH:
        return unit(counted.toarray())
    state = int(generator(seed, "audit word directions").integers(2**31))
    return unit(TruncatedSVD(WIDTH, random_state=state).fit_transform(counted))


def unit(rows: Array) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(length > 0, length, 1.0)).astype(np.float32)
