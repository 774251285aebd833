"""What a local engine compares: a vector for every region or word of an item, and one for the whole.

Shape letters: n items, L regions or words of the longest item, T fragments of all items, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.engines.pooling import element_mask


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


@dataclass(frozen=True)
class PackedFragments:
    """Encodings of many items, one item's fragments after the other's, nothing padded: `vectors` (T, D).

    A single caption of 60 words would otherwise make 25,000 captions take 6 GB at width 1024.
    """

    vectors: Tensor
    lengths: Tensor
    whole: Tensor

    def __len__(self) -> int:
        return len(self.lengths)


AnyFragments = Fragments | PackedFragments


def pack_fragments(parts: list[Fragments]) -> PackedFragments:
    """Several batches as one."""
    rows = [part.vectors[element_mask(part.lengths, part.vectors.shape[1], part.vectors.device)] for part in parts]
    return PackedFragments(
        torch.cat(rows), torch.cat([part.lengths for part in parts]), torch.cat([part.whole for part in parts])
    )


def select_fragments(fragments: AnyFragments, rows: slice | Tensor) -> Fragments:
    """Some of the items, padded to the longest of them."""
    lengths = fragments.lengths[rows]
    longest = int(lengths.max()) if len(lengths) else 1
    if isinstance(fragments, Fragments):
        return Fragments(fragments.vectors[rows][:, :longest], lengths, fragments.whole[rows])
    starts = (fragments.lengths.cumsum(0) - fragments.lengths)[rows]
    exists = torch.arange(longest) < lengths[:, None]
    places = torch.where(exists, starts[:, None] + torch.arange(longest), 0).to(fragments.vectors.device)
    vectors = fragments.vectors[places].masked_fill_(~exists[..., None].to(places.device), 0.0)
    return Fragments(vectors, lengths, fragments.whole[rows])


def padded_fragments(fragments: AnyFragments) -> Fragments:
    """All of the items, padded to the longest."""
    return fragments if isinstance(fragments, Fragments) else select_fragments(fragments, slice(None))
