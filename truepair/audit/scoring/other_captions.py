"""What the other captions of an image say of a caption: people who describe one picture use the same words.

Where a collection has several captions an image, a wrong one stands out among the others, whatever a model makes of the
picture. No network: cosines of tf-idf vectors, so that the evidence is independent of what a model learned.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from truepair.data.pairs import Array, IntArray, Pairs

OTHERS = "others"
"""Name of the indicator."""
WORDS_KEPT = 50_000


class OtherCaptions:
    """The captions of each image of a collection.

    Args:
        pairs: the given pairs; images that the source repeats are one image already.
    """

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.image = pairs.image_index
        self.count = np.bincount(self.image, minlength=len(pairs.images))

    @cached_property
    def known(self) -> bool:
        """Whether there is an image with two captions, and a word that two of its captions share."""
        return bool((self.count > 1).any()) and self.vectors is not None and bool(self._given[1].any())

    def column(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        """`agreement` under the indicator's name; nothing where nothing is known."""
        return {OTHERS: self.agreement(image_rows, caption_rows)} if self.known else {}

    def agreement(self, image_rows: IntArray, caption_rows: IntArray) -> Array:
        """(n,) float32 in [0, 1]: mean cosine of the caption of each pair of the second rows with the captions of the
        image of each pair of the first, the given caption of that very pair left out.

        An image without another caption says nothing: its pairs get the mean over the given pairs that have one.
        """
        mean, several = self._agreement(image_rows, caption_rows)
        agreed, those = self._given
        typical = float(agreed[those].mean()) if those.any() else 0.5
        return np.where(several, mean, typical).astype(np.float32)

    @cached_property
    def vectors(self) -> Any | None:
        """(pairs, words) sparse unit rows; None where no word occurs twice."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        captions, texts = self.pairs.texts.captions, self.pairs.text_index.tolist()
        counted = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=WORDS_KEPT, dtype=np.float32)
        try:
            return counted.fit_transform([captions[text] for text in texts]).tocsr()
        except ValueError:  # no word occurs twice
            return None

    @cached_property
    def _given(self) -> tuple[Array, Array]:
        rows = np.arange(len(self.pairs), dtype=np.int64)
        return self._agreement(rows, rows)

    @cached_property
    def _sums(self) -> Any:
        """(images, words): the sum of each image's captions."""
        from scipy.sparse import csr_matrix

        size = len(self.pairs)
        member = csr_matrix((np.ones(size, np.float32), (self.image, np.arange(size))), shape=(len(self.count), size))
        return (member @ self.vectors).tocsr()

    def _agreement(self, image_rows: IntArray, caption_rows: IntArray) -> tuple[Array, Array]:
        """Mean cosines, and whether there was another caption at all."""
        assert self.vectors is not None
        images, captions = self.image[image_rows], self.vectors[caption_rows]
        others = self.count[images] - 1
        whole = _products(self._sums[images], captions) - _products(self.vectors[image_rows], captions)
        return np.clip(whole / np.maximum(others, 1), 0.0, 1.0), others > 0


def _products(left: Any, right: Any) -> Array:
    """(n,) float64 scalar products of the rows of two sparse tables."""
    return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()
