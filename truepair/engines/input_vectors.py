"""What regions and words are as plain vectors, before anything is learned of them: for linear models.

Shape letters: B items, R regions, F feature width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.pooling import element_mask

MOST_PLACES = 4096
"""Width of all regions one after the other, beyond which that is left out: where regions are places of a grid it tells
more than their statistics (products), where they are not it tells less."""


def region_vectors(images: ImageBatch) -> list[Tensor]:
    """Blocks (B, ·) float32: mean, deviation, largest and smallest value of each feature over the regions that exist,
    (B, 4F), and all regions one after the other where that is not too wide, (B, R F). Of one region only itself.
    """
    features, lengths = images.features.float(), images.lengths
    count, regions, width = features.shape
    if regions == 1:
        return [features[:, 0]]
    absent = ~element_mask(lengths, regions, features.device)[..., None]
    number = lengths.to(features)[:, None]
    mean = features.masked_fill(absent, 0.0).sum(dim=1) / number
    square = (features - mean[:, None]).masked_fill(absent, 0.0).square().sum(dim=1) / number
    extremes = [
        features.masked_fill(absent, -torch.inf).amax(dim=1),
        features.masked_fill(absent, torch.inf).amin(dim=1),
    ]
    blocks = [torch.cat([mean, square.sqrt(), *extremes], dim=1)]
    return blocks if regions * width > MOST_PLACES else [*blocks, features.view(count, regions * width)]


def word_vectors(texts: TextBatch, vocabulary_size: int) -> list[Tensor]:
    """One block: the vectors of the texts where they have some, else which words each has, (B, vocabulary) of length
    one.
    """
    if texts.vectors is not None:
        return [texts.vectors.float()]
    has = torch.zeros(len(texts), vocabulary_size, device=texts.words.device)
    has.scatter_(1, texts.words, 1.0)
    has[:, 0] = 0.0  # padding
    return [normalize(has, dim=1)]
