"""Relation alignment: image and text of a batch that stand alike to the confident pairs go together (UOT-RCL)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.errors import InputError
from truepair.losses.products import products
from truepair.losses.similarity_matrix import (
    check_finite,
    check_similarity,
    check_temperature,
    log_matching_probabilities,
)

MEMORY_BYTES = 2 * 2**20  # stays in cache


def relations(vectors: Tensor, confident_vectors: Tensor, *, temperature: float = 1.0) -> Tensor:
    """R, (B, G), rows that sum to 1: softmax over the confident set of −cos(z, z_G)/τ2 (UOT-RCL, eq. 16).

    Args:
        vectors: z of one modality, (B, d).
        confident_vectors: z_G of the confident set in the same modality, (G, d), G ≥ 1.
        temperature: τ2 > 0.

    Raises:
        InputError: a shape does not fit, a vector is not finite, or τ2 ≤ 0.
    """
    check_temperature(temperature)
    fits = vectors.ndim == confident_vectors.ndim == 2 and vectors.shape[1] == confident_vectors.shape[1]
    if not fits or not len(vectors) or not len(confident_vectors):
        raise InputError(
            f"vectors have shape {tuple(vectors.shape)}, those of the confident set {tuple(confident_vectors.shape)}; "
            "expected (B, d) and (G, d) with at least one row each"
        )
    check_finite("vectors", vectors)
    check_finite("confident_vectors", confident_vectors)
    cosine = products(normalize(vectors, dim=1), normalize(confident_vectors, dim=1))
    return torch.softmax(-cosine / temperature, dim=1)


@torch.no_grad()
def relation_cost(image_relation: Tensor, text_relation: Tensor, *, memory_bytes: int = MEMORY_BYTES) -> Tensor:
    """Jensen–Shannon divergence of every image's relation from every text's, (B, B) in [0, log 2] (UOT-RCL, eq. 17).

    Row = image, column = text. It has no gradient: the plan made of it is a target. JSD is taken as the entropy of
    the mean less the mean of the entropies, in float64, so that there is one logarithm per image, text and G.

    Args:
        image_relation: R^v, (B, G), rows that sum to 1.
        text_relation: R^t, (B, G).
        memory_bytes: working memory beside the result; one image is always taken.

    Raises:
        InputError: the shapes differ, or a value is negative or not finite.
    """
    if image_relation.shape != text_relation.shape or image_relation.ndim != 2 or not image_relation.numel():
        raise InputError(
            f"relations of shape {tuple(image_relation.shape)} and {tuple(text_relation.shape)}; expected (B, G) twice"
        )
    images, texts = _checked("image", image_relation), _checked("text", text_relation)
    own = (_entropy(images)[:, None] + _entropy(texts)) / 2
    height = max(1, memory_bytes // (2 * texts.numel() * texts.element_size()))
    mixed = torch.cat([_entropy((some[:, None] + texts).mul_(0.5)) for some in torch.split(images, height)])
    return (mixed - own).clamp_(min=0.0).to(image_relation.dtype)


def relation_alignment(similarity: Tensor, plan: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Loss of every pair, (B,): −Σ_j M^{v2t}_ij log p^{v2t}_ij − Σ_j M^{t2v}_ij log p^{t2v}_ij (UOT-RCL, eq. 18).

    M^{v2t} is the plan with rows of sum 1, M^{t2v} with columns of sum 1, read as text → image; a row or column
    without mass adds nothing. Pair i gets the term of image i and that of text i.

    Args:
        similarity: z^v z^tᵀ, (B, B), row = image, column = text; any float dtype.
        plan: M, (B, B), ≥ 0. No gradient flows into it.
        temperature: τ3 > 0 of both softmaxes.

    Raises:
        InputError: the similarity is not square and finite, the plan is of another shape, negative or not finite, or
            τ3 ≤ 0.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    if plan.shape != similarity.shape:
        raise InputError(
            f"plan has shape {tuple(plan.shape)}; expected that of the similarity, {tuple(similarity.shape)}"
        )
    target = _checked("plan", plan)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    loss = torch.zeros(len(plan), dtype=to_text.dtype, device=to_text.device)
    for dim, log_probability in ((1, to_text), (0, to_image)):
        mass = target.sum(dim=dim, keepdim=True)
        share = (target / mass.masked_fill(mass == 0, 1.0)).to(log_probability)
        loss = loss - (share * log_probability).sum(dim=dim)
    return loss


def _entropy(probabilities: Tensor) -> Tensor:
    """−Σ p log p over the last dimension, exact at 0 log 0 = 0."""
    logarithm = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log_()
    return -logarithm.mul_(probabilities).sum(dim=-1)


def _checked(name: str, values: Tensor) -> Tensor:
    precise = values.detach().to(torch.float64 if values.device.type != "mps" else torch.float32)
    usable = (precise >= 0) & (precise < torch.inf)
    if not bool(usable.all()):
        row, column = (~usable).nonzero()[0].tolist()
        raise InputError(
            f"{name}[{row}, {column}] is {values[row, column].item()}; expected a finite value of at least 0"
        )
    return precise
