"""One prototype a class, shared by both modalities: the auxiliary network of the methods that learn from labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from truepair.errors import InputError
from truepair.losses.products import products
from truepair.methods.auxiliary import AuxiliaryNetworks


class Prototypes(nn.Module):
    """One unit vector μ_k a class, shared by both modalities; orthogonal at first."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(classes, width))
        nn.init.orthogonal_(self.vectors)

    def forward(self, encodings: Tensor) -> Tensor:
        """(B, D) unit rows → (B, K) cosines, never in bf16, whose steps of 1/256 would blur them."""
        return products(encodings, normalize(self.vectors, dim=1))


class AuxiliaryPrototypes(AuxiliaryNetworks):
    """Prototypes of some number of classes, for the method of that name."""

    def __init__(self, method: str, classes: int) -> None:
        self.method, self.classes = method, classes

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module:
        width = getattr(engine, "vector_width", None)
        if width is None:
            raise InputError(f"method {self.method} needs an engine of one vector an item; use --model mlp or global")
        return Prototypes(self.classes, width)
