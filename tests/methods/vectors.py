"""A cosine engine whose items are vectors already, and batches of pairs of such."""

import torch
from torch import nn

from truepair.data.batch import PairBatch
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features
from truepair.methods.base import Forward


class Vectors(CosineEngine):
    """One linear layer a side."""

    def __init__(self, width, dtype=torch.float64, seed=0):
        super().__init__()
        self.vector_width = width
        self.regions, self.words = (nn.Linear(width, width, bias=False, dtype=dtype) for _ in range(2))
        generator = torch.Generator().manual_seed(seed)
        for layer in (self.regions, self.words):
            drawn = 0.3 * torch.randn(width, width, generator=generator, dtype=torch.float64)
            layer.weight.data = (torch.eye(width, dtype=torch.float64) + drawn).to(dtype)

    def new_region_encoder(self):
        return nn.Linear(self.vector_width, self.vector_width, bias=False)

    def image_features(self, images, regions=None):
        return Features(unit_vectors((regions or self.regions)(images)))

    def text_features(self, texts):
        return Features(unit_vectors(self.words(texts)))


def forward_of(engine, images, texts, ids):
    """A batch of the pairs of these ids; others can be looked at beside it."""

    def prepare(chosen):
        return PairBatch(chosen, images[chosen], texts[chosen])

    return Forward(engine, prepare(ids), None, prepare)
