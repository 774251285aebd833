"""`Fragments`: what a local engine compares: a vector for every region or word of an item, and one for the whole.

Shape letters: n items, L regions or words of the longest item, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Fragments:
    """Encodings of n items of either side.

    `vectors` (n, L, D) have L2-normalised rows and are zero beyond an item's length; `lengths` (n,) int64 in [1, L]
    live on the CPU; `whole` (n, D), L2-normalised, is the global vector by self-attention.
    """

    vectors: Tensor
    lengths: Tensor
    whole: Tensor

    def __len__(self) -> int:
        return int(self.vectors.shape[0])


def concatenate_fragments(parts: list[Fragments]) -> Fragments:
    """Several batches as one, padded to the longest item of all."""
    longest = max(part.vectors.shape[1] for part in parts)
    return Fragments(
        torch.cat([pad(part.vectors, (0, 0, 0, longest - part.vectors.shape[1])) for part in parts]),
        torch.cat([part.lengths for part in parts]),
        torch.cat([part.whole for part in parts]),
    )


def select_fragments(fragments: Fragments, rows: slice | Tensor) -> Fragments:
    """Some of the items, padded to the longest of them."""
    lengths = fragments.lengths[rows]
    longest = int(lengths.max()) if len(lengths) else fragments.vectors.shape[1]
    return Fragments(fragments.vectors[rows][:, :longest], lengths, fragments.whole[rows])
