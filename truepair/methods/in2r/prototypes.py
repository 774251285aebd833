"""From the neighbours of an item in the bank to the prototype of its missing partner."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, scaled_dot_product_attention

from truepair.losses.products import products
from truepair.methods.auxiliary import AuxiliaryNetworks

HEADS = 4
DROPOUT = 0.1


class Refiner(nn.Module):
    """Self-attention among k neighbours, added to them, then layer norm; their mean, of length 1. As released.

    The order of the neighbours does not matter.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = HEADS if width % HEADS == 0 else 1
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(DROPOUT)

    def forward(self, neighbours: Tensor) -> Tensor:
        """(n, k, D) → (n, D)."""
        query, key, value = (
            layer(neighbours).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended = scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        refined = self.norm(neighbours + self.dropout(self.output(attended)))
        return normalize(refined.mean(dim=1), dim=1)


class Refiners(nn.ModuleList):
    """Of each network one for texts and one for images."""

    def __init__(self, networks: int, width: int) -> None:
        super().__init__(nn.ModuleList([Refiner(width), Refiner(width)]) for _ in range(networks))


class AuxiliaryRefiners(AuxiliaryNetworks):
    """The refiners, beside networks that start alike, so that vectors of one mean something to the other."""

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module:
        networks = engine.networks()
        for network in networks[1:]:
            network.load_state_dict(networks[0].state_dict())
        return Refiners(len(networks), networks[0].vector_width)


def nearest_partners(queries: Tensor, keys: Tensor, partners: Tensor, excluded: Tensor, count: int) -> Tensor:
    """The partners of the k nearest keys of each query, (n, k, D); without a gradient.

    Args:
        queries: (n, D) and keys (M, D), compared by their product.
        partners: (M, D), those of the keys.
        excluded: (n, M) bool, keys that are not to be found; of each query at least k are left.
    """
    nearness = products(queries.detach(), keys).masked_fill(excluded, -torch.inf)
    return partners[nearness.topk(count, dim=1).indices]
