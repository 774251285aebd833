"""`Features`: what an encoder makes of a batch, before it is compared: one vector an item, or one a fragment.

Shape letters: n items, L fragments of the longest item, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from truepair.engines.pooling import element_mask
from truepair.engines.unit import unit


@dataclass(frozen=True)
class Features:
    """L2-normalised `vectors`: (n, D) and no `lengths`, or (n, L, D), zero beyond an item's length, with (n,) lengths.

    `lengths` is int64 on the CPU.
    """

    vectors: Tensor
    lengths: Tensor | None = None

    def mapped(self, head: nn.Module) -> Features:
        """Every vector through a network, L2-normalised again; what does not exist stays zero."""
        vectors = unit(head(self.vectors).to(self.vectors.dtype))
        if self.lengths is None or not bool((self.lengths < vectors.shape[1]).any()):
            return Features(vectors, self.lengths)
        mask = element_mask(self.lengths, vectors.shape[1], vectors.device)
        return Features(vectors.masked_fill(~mask[..., None], 0.0), self.lengths)

    def pooled(self) -> Tensor:
        """(n, D): the vector of each item, or the mean of its fragments."""
        if self.lengths is None:
            return self.vectors
        return self.vectors.sum(dim=1) / self.lengths.to(self.vectors)[:, None]
