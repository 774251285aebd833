"""A collection over arrays in memory."""

from truepair.data.collection import EmbeddingCollection


class ArrayCollection(EmbeddingCollection):
    def __init__(self, images, texts, name="arrays"):
        self.images, self.texts, self.name, self.problems = images, texts, name, ()
        self.width = images.shape[1]
        self.most_read = 0

    def __len__(self):
        return len(self.images)

    def ids(self, start, stop):
        return [f"id{row}" for row in range(start, min(stop, len(self)))]

    def captions(self, start, stop):
        return [""] * len(self.ids(start, stop))

    def read(self, start, stop):
        self.most_read = max(self.most_read, stop - start)
        return self.images[start:stop].astype("float32"), self.texts[start:stop].astype("float32")

    def fingerprint(self):
        return f"{self.name}-{len(self)}"

    def place(self, row):
        return "arrays.npy", row + 1000


def random_pairs(count, width, *, seed=0, noise=0.0):
    """(images, texts) float32 of any length; the first `noise` of them mismatched."""
    import numpy as np

    draw = np.random.default_rng(seed)
    images = draw.normal(size=(count, width)).astype(np.float32)
    texts = (images + draw.normal(size=(count, width))).astype(np.float32) * 3
    wrong = int(noise * count)
    texts[:wrong] = np.roll(texts[:wrong], 1, axis=0)
    return images, texts
