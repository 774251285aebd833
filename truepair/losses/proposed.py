"""What is learned of a caption that somebody proposes for an image, beside the batch: a partner put to a pair anew."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.distillation import NEVER
from truepair.losses.similarity_matrix import check_similarity, check_temperature


def proposed_partner(
    similarity: Tensor, proposed: Tensor, places: Tensor, *, no_candidate: Tensor, temperature: float = 0.05
) -> Tensor:
    """Cross entropy of every proposal, (n,) ≥ 0: −log p(its caption | its image) − log p(its image | its caption).

    Candidates of the image are the captions of the batch and the proposed one; those of the caption all images.

    Args:
        similarity: S, (B, B), row = image, column = caption.
        proposed: S of the images of the batch to the proposed captions, (B, n).
        places: (n,) int64, the row of the image that each caption is proposed for.
        no_candidate: (n, B) bool, captions of the batch that are no candidates for the image of a proposal.
        temperature: τ > 0.

    Raises:
        InputError: `similarity` is not square and finite, a shape does not fit, or τ ≤ 0.
    """
    count, number = check_similarity(similarity), len(places)
    check_temperature(temperature)
    if proposed.shape != (count, number) or no_candidate.shape != (number, count):
        raise InputError(
            f"{number} proposals for {count} pairs: proposed has shape {tuple(proposed.shape)}, no_candidate "
            f"{tuple(no_candidate.shape)}; expected ({count}, {number}) and ({number}, {count})"
        )
    others = (similarity[places] / temperature).masked_fill(no_candidate, NEVER)
    scaled = proposed / temperature
    own = scaled[places, torch.arange(number, device=places.device)]
    to_text = torch.logsumexp(torch.cat([others, own[:, None]], dim=1), dim=1) - own
    return to_text + torch.logsumexp(scaled, dim=0) - own
