"""How well the images of a stretch of pairs fit the captions of others, at every offset and in every order.

A place is the position of a pair among the M scored ones. Similarities are centred: what an image has in common with
all captions, and a caption with all images, is taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from truepair.audit.scoring.scored_pairs import Space
from truepair.data.pairs import Array, IntArray
from truepair.seeding import generator

BLOCK = 500
REFERENCE_RUNS, REFERENCE_RUN = 8, 16
"""References are drawn as runs of neighbours, which are read in one piece each."""


class Alignment:
    """Centred similarities of images and captions of scored pairs, told by their places.

    Args:
        rows: (M,) ascending rows of the source; place k is row `rows[k]`.
        spaces: each compares the images of the pairs that it covers with any caption.
        seed: of the draw of the references by which similarities are centred.
    """

    def __init__(self, rows: IntArray, spaces: Sequence[Space], seed: int) -> None:
        self.rows, self.spaces = rows, spaces
        first = generator(seed, "audit faults").integers(0, max(1, len(rows) - REFERENCE_RUN), REFERENCE_RUNS)
        drawn = np.unique(first[:, None] + np.arange(min(REFERENCE_RUN, len(rows))))
        self.references: IntArray = rows[drawn]
        self.means: dict[int, float] = {}

    def blocks(self, places: IntArray) -> Iterator[tuple[Space, IntArray]]:
        """The places in pieces of at most 500, each with a space that covers their images."""
        for start in range(0, len(places), BLOCK):
            left = self.rows[places[start : start + BLOCK]]
            for space in self.spaces:
                while len(covered := space.covers(left)):  # some spaces take few at a time
                    left = np.setdiff1d(left, covered)
                    yield space, np.searchsorted(self.rows, covered)

    def matrix(self, space: Space, images: IntArray, captions: IntArray) -> Array:
        """(n, m) float64 of the places `images`, all of them covered by the space, and the places `captions`."""
        image_rows, caption_rows = self.rows[images], self.rows[captions]
        similarity = space.compared(image_rows, caption_rows).numpy().astype(np.float64)
        level = self.level(space, image_rows, caption_rows)
        return similarity - level[0][:, None] - level[1][None, :] + level[2]

    def pairs(self, images: IntArray, captions: IntArray) -> Array:
        """(n,) float64 of image i with caption i; the images are ascending. NaN where no space covers one."""
        found = np.full(len(images), np.nan)
        for space, covered in self.blocks(images):
            at = np.searchsorted(images, covered)
            image_rows, caption_rows = self.rows[covered], self.rows[captions[at]]
            similarity = space.paired(image_rows, caption_rows).numpy().astype(np.float64)
            level = self.level(space, image_rows, caption_rows)
            found[at] = similarity - level[0] - level[1] + level[2]
        return found

    def level(self, space: Space, image_rows: IntArray, caption_rows: IntArray) -> tuple[Array, Array, float]:
        """Mean similarity of the images to the reference captions, of the captions to the reference images, of both."""
        to_captions = space.compared(image_rows, self.references).numpy().mean(axis=1)
        to_images = space.compared(self.references, caption_rows).numpy().mean(axis=0)
        if id(space) not in self.means:
            self.means[id(space)] = float(space.compared(self.references, self.references).numpy().mean())
        return to_captions, to_images, self.means[id(space)]

    def matching(self, images: IntArray, captions: IntArray) -> Array:
        """(n,) the indicator "matching" of image i with caption i; the images are ascending. NaN where uncovered."""
        found = np.full(len(images), np.nan)
        for space, covered in self.blocks(images):
            at = np.searchsorted(images, covered)
            found[at] = space.scores(self.rows[covered], self.rows[captions[at]])["matching"]
        return found

    def profile(self, places: IntArray, reach: int) -> tuple[Array, Array]:
        """Mean similarity of the images to the captions at the offsets −reach … reach, and its standard error,
        (2 reach + 1,) each; NaN where no caption is there.
        """
        sums, counts = np.zeros(2 * reach + 1), np.zeros(2 * reach + 1)
        squares = cells = 0.0
        for space, images in self.blocks(places):
            captions = np.arange(max(0, images[0] - reach), min(len(self.rows), images[-1] + reach + 1))
            similarity = self.matrix(space, images, captions)
            offset = captions[None, :] - images[:, None] + reach
            inside = (offset >= 0) & (offset <= 2 * reach)
            np.add.at(sums, offset[inside], similarity[inside])
            np.add.at(counts, offset[inside], 1)
            squares, cells = squares + float((similarity[inside] ** 2).sum()), cells + int(inside.sum())
        mean = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        spread = np.sqrt(squares / max(cells, 1))
        return mean, np.divide(spread, np.sqrt(counts), out=np.full(len(sums), np.nan), where=counts > 0)
