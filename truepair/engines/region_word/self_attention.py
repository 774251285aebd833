"""One vector for a whole picture or caption: self-attention of its regions or words (SGRAF, "global representations").

w_r = softmax_r( c · (a_r ⊙ g) ), a_r = embedding of element r, g = embedding of the mean element; the vector is the
weighted mean of the elements, L2-normalised.

Shape letters: n items, L elements of the longest, D width. Elements beyond an item's length are zero and count for
nothing.
Source: "Similarity Reasoning and Filtration for Image-Text Matching" (SGRAF, AAAI 2021), section 3.1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from truepair.engines.pooling import element_mask
from truepair.engines.unit import unit


class SelfAttention(nn.Module):
    """What both sides share; the text side is this class as it is (no batch norm).

    Args:
        width: D.
        dropout: of both embeddings, in training.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.local = xavier_linear(width, width)
        self.whole = xavier_linear(width, width)
        self.common = xavier_linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """(n, L, D), (n,) → (n, D) unit vectors."""
        dtype, longest = vectors.dtype, vectors.shape[1]
        mean = vectors.sum(dim=1) / lengths.to(vectors)[:, None]
        whole = self.dropout(torch.tanh(self.normalize_whole(self.whole(mean).to(dtype))))
        mask = element_mask(lengths, longest, vectors.device) if bool((lengths < longest).any()) else None
        local = self.dropout(torch.tanh(self.normalize_local(self.embed_present(vectors, mask), mask)))
        # c · (a ⊙ g) = a · (g ⊙ c): no (n, L, D) product. The bias shifts every score alike and cancels.
        scores = torch.bmm(local, (whole * self.common.weight).unsqueeze(2)).squeeze(2).to(dtype) + self.common.bias
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=1)
        return unit(torch.bmm(weights.unsqueeze(1), vectors).squeeze(1).to(dtype))

    def embed_present(self, vectors: Tensor, mask: Tensor | None) -> Tensor:
        """The linear map of the elements that exist, zero elsewhere: (n, L, D)."""
        if mask is None:
            embedded: Tensor = self.local(vectors)
            return embedded.to(vectors.dtype)
        present = mask.flatten().nonzero().squeeze(1)
        rows: Tensor = self.local(vectors.flatten(0, 1)[present]).to(vectors.dtype)
        padded = rows.new_zeros(mask.numel(), rows.shape[1])
        return padded.index_copy(0, present, rows).view(vectors.shape)

    def normalize_local(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        return embedded

    def normalize_whole(self, embedded: Tensor) -> Tensor:
        return embedded


class ImageSelfAttention(SelfAttention):
    """The image side: a batch norm per region position, and one over the images.

    Args:
        width: D.
        regions: number of region positions; an image may have fewer.
        dropout: of both embeddings, in training.
    """

    def __init__(self, width: int, regions: int, dropout: float) -> None:
        super().__init__(width, dropout)
        self.local_norm = nn.BatchNorm1d(regions)
        self.whole_norm = nn.BatchNorm1d(width)

    def normalize_whole(self, embedded: Tensor) -> Tensor:
        norm = self.whole_norm
        if norm.training and len(embedded) == 1:  # one image has no variance: the running statistics, left as they are
            return batch_norm(embedded, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        normalized: Tensor = norm(embedded)
        return normalized

    def normalize_local(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """Per position, over the D features of the images that have a region there."""
        norm, longest = self.local_norm, embedded.shape[1]
        mean, variance = norm.running_mean, norm.running_var
        assert mean is not None
        assert variance is not None
        assert norm.num_batches_tracked is not None
        mean, variance = mean[:longest], variance[:longest]
        if norm.training:
            norm.num_batches_tracked += 1
            if mask is None:  # updates the running statistics in place, through the views
                return batch_norm(
                    embedded, mean, variance, norm.weight[:longest], norm.bias[:longest], training=True, eps=norm.eps
                )
            running_mean, running_variance = mean, variance
            count = (mask.sum(dim=0) * embedded.shape[2]).to(embedded.dtype)
            some = count.clamp(min=1)
            mean = embedded.sum(dim=(0, 2)) / some
            centred = (embedded - mean[:, None]).masked_fill(~mask[..., None], 0.0)
            variance = (centred * centred).sum(dim=(0, 2)) / some
            with torch.no_grad():
                seen = count > 0
                unbiased = variance * (some / (some - 1).clamp(min=1))
                running_mean[seen] = torch.lerp(running_mean, mean, 0.1)[seen]
                running_variance[seen] = torch.lerp(running_variance, unbiased, 0.1)[seen]
        scale = norm.weight[:longest] * torch.rsqrt(variance + norm.eps)
        return (embedded - mean[:, None]) * scale[:, None] + norm.bias[:longest, None]


def xavier_linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear map with SGRAF's initial values: Xavier uniform weights, zero bias."""
    linear = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
