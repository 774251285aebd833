"""What speaks for a pair, from its two embeddings and a bank of others: five indicators in [0, 1], larger = better.

All compare a candidate, the image x of row a with the text y of row b, with the bank's pairs (X_j, Y_j) but those of
rows a and b. Where the bank tells by cosines what is the same (`Bank.same`), matching, rank and certainty leave out all
that have the image x or the text y again: another right caption of x is no wrong one to choose y from. Neighbours and
structure keep them: it is the best neighbour there is. s = ⟨x, y⟩; ⟨x, Y_j⟩ is image to text, ⟨y, X_j⟩ text to image;
K = 1 + the number of others.

- matching: how probable it is that x chooses y among the others' texts, and y x, the mean of both: exp(s/τ) /
  (exp(s/τ) + Σ_j exp(s_j/τ)) (CRCL eq. 3 and 10, GSC eq. 3, with the bank for the batch). Its log odds come along.
- rank: 1 − log √(r₁ r₂) / log K, where y has rank r₁ for x among the others' texts and x has rank r₂ for y; ties count
  half. 1 for mutual best, 0 for last on both sides.
- structure: x stands to the bank's images as y stands to their texts: (1 + c)/2 with c the correlation over j, weighted
  by t_j², of ⟨x, X_j⟩ and ⟨y, Y_j⟩ (GSC eq. 8, with the bank as anchors and their trust t as labels). GSC takes the
  cosine; embeddings of one space are all alike to some extent, which brings every cosine near 1, and so the weighted
  means are taken out first.
- neighbours: the k bank images nearest to x have texts near y, and the k texts nearest to y have images near x:
  (1 + c)/2 of the mean c of both weighted mean cosines, with weights t_j exp(nearness/0.1). This is the idea of LEMoN
  (Zhang et al., ICML 2025) as a bounded mean; its own score is in `truepair.reproduce.lemon`.
- certainty: how much evidence there is for any partner at all: 1 − u = Σ e_k / (Σ e_k + K) over the K candidates, the
  given one included (UGNCL eq. 4 to 6), with e_k = (exp(⟨x, Y_k⟩/τ) + exp(⟨y, X_k⟩/τ)) / 2β, in units of the evidence
  β that the bank's unrelated pairs find in each other. UGNCL prints absolute evidence, but the level of a cosine is
  free. 0.5 is a pair that finds no more than unrelated pairs do. Where true partners stand in the bank, mismatched
  pairs find as much evidence as matched ones: a low value speaks against a pair, a high one for nothing.

The trust t of an entry is its mutual rank in the bank. Without it the neighbours say little where most pairs are
mismatched: at 60 % their AUROC on held-out drawings (`scenes`) was 0.83, with it 0.92.

Where no other entry is left, nothing is known: all indicators are 0.5 and the log odds 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from truepair.audit.scoring.bank import TIE, Bank, mutual_rank, rank_among
from truepair.audit.scoring.comparison import Block, OwnEntries, blocks, nearest, products
from truepair.data.pairs import Array, IntArray

NEIGHBOUR_TEMPERATURE = 0.1


@torch.no_grad()
def score(images: Tensor, texts: Tensor, bank: Bank, *, image_rows: Tensor, text_rows: Tensor) -> dict[str, Tensor]:
    """The `COLUMNS` of n candidates, (n,) float32 each: image i with text i. How they are cut into calls is no matter.

    `similarity` is the cosine; `log_odds` log p/(1 − p) of the matching probability p, the mean of both directions,
    which tells apart what the probability rounds to 0 or 1; all others are indicators in [0, 1], never NaN.

    Args:
        images: (n, D) unit rows; computed in float32.
        texts: (n, D) unit rows of the same space.
        bank: on the same device.
        image_rows: (n,) int64, which row of the collection the image is of; −1 for none.
        text_rows: (n,) int64, the same for the text; equal to `image_rows` for given pairs.

    Raises:
        InputError: the sides are not (n, D) unit rows of the bank's width and device (rows of zeros are refused), or
            there is not one row for each.
    """
    parts = [_score(block, bank) for block in blocks(images, texts, bank, image_rows, text_rows)]
    none = images.new_empty(0).float()
    return {name: torch.cat([none, *(part[name] for part in parts)]) for name in COLUMNS}


def scored_columns(
    images: Tensor, texts: Tensor, bank: Bank, image_rows: IntArray, text_rows: IntArray
) -> dict[str, Array]:
    """`score` as arrays, `COLUMNS` in their order."""
    scores = score(images, texts, bank, image_rows=torch.from_numpy(image_rows), text_rows=torch.from_numpy(text_rows))
    return {name: values.cpu().numpy() for name, values in scores.items()}


def _score(block: Block, bank: Bank) -> dict[str, Tensor]:
    to_images = products(block.images, bank.images)
    to_texts = products(block.texts, bank.texts)
    own = block.own  # for whom other captions of the image are neighbours, the best there are, but not unrelated
    strange = own.with_alike(to_images, to_texts, bank.same) if bank.same <= 1 else own
    sides = ((block.images, bank.texts), (block.texts, bank.images))
    directions = (strange.fill(products(vectors, entries), -torch.inf) for vectors, entries in sides)
    known = two_way(block.similarity, directions, strange.others, bank.temperature, bank.background)
    for name in reversed(VECTOR_INDICATORS):
        known[name] = VECTOR_INDICATORS[name](to_images, to_texts, own, bank)
    return {"similarity": block.similarity, **settled(known, strange.others)}


def two_way(
    similarity: Tensor, directions: Iterable[Tensor], others: Tensor, temperature: float, background: float
) -> dict[str, Tensor]:
    """log_odds, matching, rank and certainty of b candidates, all that needs no vectors of items.

    Args:
        similarity: (b,) of the candidates.
        directions: (b, m) twice: how similar the image is to the others' texts, then the text to the others' images;
            minus infinity at a candidate's own entries.
        others: (b,) float32, how many entries are not a candidate's own.
        temperature, background: as in `Bank`.
    """
    scaled = similarity / temperature
    ranks, log_evidence, log_odds = [], [], []
    for to_others in directions:
        ranks.append(rank_among(similarity, to_others))
        log_others = _log_sum_exp(to_others, temperature)
        log_odds.append(scaled - log_others)
        log_evidence.append(torch.logaddexp(scaled, log_others))
    return {
        "log_odds": (log_odds[0] + log_odds[1]) / 2,
        "matching": (log_odds[0].sigmoid() + log_odds[1].sigmoid()) / 2,
        "rank": mutual_rank(ranks[0], ranks[1], others),
        # Σe/(Σe + K) = σ(log Σe/K), from the log of Σ_k exp(s_k/τ) of both directions.
        "certainty": (torch.logaddexp(*log_evidence) - math.log(2) - background - (others + 1).log()).sigmoid(),
    }


def settled(known: dict[str, Tensor], others: Tensor) -> dict[str, Tensor]:
    """The values where there are others to compare with, "nothing is known" elsewhere; indicators within [0, 1]."""
    alone = others == 0
    return {
        name: torch.where(alone, 0.0, value) if name == "log_odds" else torch.where(alone, 0.5, value).clamp(0, 1)
        for name, value in known.items()
    }


def _log_sum_exp(similarity: Tensor, temperature: float) -> Tensor:
    """log Σ_j exp(s_j/τ) of each row, a quarter of the time of torch's; minus infinity for none."""
    largest = similarity.amax(dim=1)
    top = largest.nan_to_num(neginf=0.0)
    shifted = (similarity - top[:, None]).mul_(1 / temperature).exp_()
    return shifted.sum(dim=1).log() + top / temperature


def _neighbours(to_images: Tensor, to_texts: Tensor, own: OwnEntries, bank: Bank) -> Tensor:
    fits = []
    for near, other_side in ((to_images, to_texts), (to_texts, to_images)):
        similarity = own.fill(near.clone(), -torch.inf)
        asked = nearest(similarity, own, bank.neighbours)
        top = similarity.amax(dim=1, keepdim=True).nan_to_num_(neginf=0.0)
        weight = (similarity - top).mul_(1 / NEIGHBOUR_TEMPERATURE).exp_().mul_(bank.trust).mul_(asked)
        total = weight.sum(dim=1)
        fit = weight.mul_(other_side).sum(dim=1) / total
        fits.append(torch.where(total == 0, 0.0, fit))
    return (1 + (fits[0] + fits[1]) / 2) / 2


def _structure(to_images: Tensor, to_texts: Tensor, own: OwnEntries, bank: Bank) -> Tensor:
    """Overwrites both similarities."""
    trust = bank.trust
    weight = trust.square()
    total = weight.sum().expand(len(own.others)).index_add(0, own.row, weight[own.column], alpha=-1)
    lengths = []
    for similarity in (to_images, to_texts):
        mean = own.fill(similarity, 0.0) @ weight / total.masked_fill(total <= 0, 1.0)
        weighted = own.fill(similarity.sub_(mean[:, None]).mul_(trust), 0.0)
        lengths.append(torch.linalg.vector_norm(weighted, dim=1))
    constant = torch.minimum(lengths[0], lengths[1]) <= TIE * total.clamp(min=0).sqrt()
    correlation = to_images.mul_(to_texts).sum(dim=1) / (lengths[0] * lengths[1])
    return (1 + torch.where(constant, 0.0, correlation)) / 2


VECTOR_INDICATORS: dict[str, Callable[[Tensor, Tensor, OwnEntries, Bank], Tensor]] = {
    "structure": _structure,
    "neighbours": _neighbours,
}
"""Indicators that compare items of one side with each other: a line each. A function takes the similarities (b, m) of
the images to the bank's images and of the texts to the bank's texts, the candidates' own entries and the bank, and
gives (b,) in [0, 1], larger = better matched. The first is asked last and may overwrite the similarities. What people
read of it: `result.INDICATORS`, else its name."""

BANK_INDICATORS = ("matching", "rank", *VECTOR_INDICATORS, "certainty")
"""All that a bank can tell, in the order of `result.INDICATORS`."""
COLUMNS = ("similarity", "log_odds", *BANK_INDICATORS)
"""All that a bank says of a pair, in the order of the tables; files of tensors know no order."""
