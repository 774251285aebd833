"""Partners for disbelieved pairs: the caption that a teacher finds most probable for each of their images."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.losses.distillation import NEVER
from truepair.losses.proposed import proposed_partner
from truepair.methods.base import Forward, at_least_single

MEMORY_BYTES = 96 * 2**20
SAME = 1 - 1e-4
"""Images of this cosine are one picture that stands in several pairs: none is proposed what another came with."""


@torch.no_grad()
def propose(
    images: Tensor, texts: Tensor, *, temperature: float, memory_bytes: int = MEMORY_BYTES
) -> tuple[Tensor, Tensor]:
    """The most probable caption for every image of P disbelieved pairs, and how probable it is, both (P,).

    Softmax of the products over the captions of all P pairs, without those that came with the same picture: never an
    own one. A block of images at a time.

    Args:
        images, texts: (P, D), those of a pair in the same row; images of length one. Where an engine compares more than
            vectors (SGR, SAF) these stand in for what it compares.
        temperature: τ of the softmax.
        memory_bytes: for blocks of products; one row is always taken.

    Returns:
        Places int64, and probabilities in [0, 1]; 0, with its own place, where no caption is left.
    """
    count = len(images)
    place, probability = torch.arange(count), torch.zeros(count)
    height = max(1, memory_bytes // (8 * max(count, 1)))
    for rows in torch.arange(count).split(height) if count else ():  # type: ignore[no-untyped-call]
        taken = images[rows] @ images.T >= SAME
        taken[torch.arange(len(rows)), rows] = True
        scaled = (images[rows] @ texts.T / temperature).masked_fill(taken, NEVER)
        best = torch.softmax(scaled, dim=1).max(dim=1)
        left = ~taken.all(dim=1)
        place[rows[left]], probability[rows[left]] = best.indices[left], best.values[left].clamp(0, 1)
    return place, probability


def partner_loss(forward: Forward, partner: Tensor, probability: Tensor, *, temperature: float) -> Tensor:
    """What is learned of the proposed captions, as far as the teachers find them probable, (B,); 0 without one.

    Args:
        partner: (B,) int64, the pair whose caption is proposed.
        probability: (B,) of that caption, 0 where none is.
        temperature: τ.
    """
    similarity, ids = forward.similarity, forward.batch.ids.cpu()
    places = probability.nonzero()[:, 0]
    if not len(places):
        return 0 * similarity.diagonal()
    partner = partner[places.cpu()]
    network, beside = forward.networks[0], forward.beside(partner).networks[0]
    engine = network.engine
    proposed = engine.as_similarity(at_least_single(engine.scores(network.images, beside.texts)))
    own = ((ids[places.cpu()][:, None] == ids) | (partner[:, None] == ids)).to(places.device)
    learned = proposed_partner(similarity, proposed, places, no_candidate=own, temperature=temperature)
    return torch.zeros_like(probability).index_add(0, places, probability[places] * learned)
