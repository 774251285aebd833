"""The similarity head of MSCN: two layers that make the score of a pair from the vector that compares its items.

Source: "Noisy Correspondence Learning with Meta Similarity Correction" (CVPR 2023), section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, relu

from truepair.engines.region_word.self_attention import xavier_linear


class SimilarityHead(nn.Module):
    """(P, S) similarity vectors → (P, 1) logits, whose σ is the similarity.

    Whose gradient passes can be chosen for a while: `learning("both")` as any network, `"encoders"` with the head held
    fixed, `"head"` with the vectors held fixed.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.in_features = inputs
        self.hidden = xavier_linear(inputs, width)
        self.out = xavier_linear(width, 1)
        self.learns: Literal["both", "encoders", "head"] = "both"

    def forward(self, vectors: Tensor) -> Tensor:
        weight, bias, out, out_bias = self.weights()
        return linear(relu(linear(vectors.detach() if self.learns == "head" else vectors, weight, bias)), out, out_bias)

    def of_distances(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) logits of the vectors √S (v − t)² of every image v (n, S) and every text t (m, S).

        By three products, since all n · m vectors take S times the memory.
        """
        if self.learns == "head":
            images, texts = images.detach(), texts.detach()
        weight, bias, out, out_bias = self.weights()
        weight = weight * math.sqrt(self.in_features)
        own = linear(images.square(), weight, bias)[:, :, None] + (texts.square() @ weight.T).T
        across = (images[:, None] * weight).flatten(0, 1) @ texts.T
        return (out @ relu(own - 2 * across.view_as(own))).squeeze(1) + out_bias

    def weights(self) -> list[Tensor]:
        """Weight and bias of the two layers, held fixed where the encoders alone learn."""
        own = [self.hidden.weight, self.hidden.bias, self.out.weight, self.out.bias]
        return [weight.detach() for weight in own] if self.learns == "encoders" else own

    @torch.no_grad()
    def start_from_distance(self, largest: float, steepness: float) -> None:
        """For `of_distances`: begin as about steepness · (largest/2 − |v − t|²), for distances in [0, largest].

        Every hidden unit has `largest` less the distance and a tenth of what was drawn, the output their mean.
        """
        self.hidden.weight.mul_(0.1).sub_(1 / math.sqrt(self.in_features))
        self.hidden.bias.fill_(largest)
        self.out.weight.fill_(steepness / self.out.in_features)
        self.out.bias.fill_(-steepness * largest / 2)

    @property
    def weight(self) -> Tensor:
        """Of the first layer; the type of the numbers."""
        return self.hidden.weight

    @contextmanager
    def learning(self, what: Literal["both", "encoders", "head"]) -> Iterator[None]:
        before, self.learns = self.learns, what
        try:
            yield
        finally:
            self.learns = before
