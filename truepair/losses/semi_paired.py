"""RCSL's losses beside the ranking: alignment and uniformity of vectors, and matches with looked-up partners."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.active_complementary import complementary_contrastive
from truepair.losses.products import products


def alignment(images: Tensor, texts: Tensor) -> Tensor:
    """‖v_i − t_i‖² of every pair, (B,) in [0, 4] for vectors of length 1 (Wang and Isola 2020).

    Raises:
        InputError: the two differ in shape or are not (B, D).
    """
    if images.ndim != 2 or images.shape != texts.shape:
        raise InputError(f"images are {tuple(images.shape)}, texts {tuple(texts.shape)}; expected (B, D) for both")
    return (images - texts).square().sum(dim=1)


def uniformity(vectors: Tensor, *, sharpness: float = 2.0) -> Tensor:
    """log mean_{i<j} exp(−t ‖x_i − x_j‖²), one number at most 0; 0 for one vector alone (Wang and Isola 2020).

    Args:
        vectors: (B, D), B ≥ 1.
        sharpness: t > 0.

    Raises:
        InputError: the vectors are not (B, D), or t ≤ 0.
    """
    if vectors.ndim != 2 or len(vectors) == 0 or not sharpness > 0:
        raise InputError(f"vectors are {tuple(vectors.shape)}, sharpness {sharpness}; expected (B, D) and one above 0")
    count = len(vectors)
    if count == 1:
        return 0 * vectors.sum()
    first, second = torch.triu_indices(count, count, offset=1, device=vectors.device)
    lengths, together = vectors.square().sum(dim=1), products(vectors, vectors)
    distance = (lengths[first] + lengths[second] - 2 * together[first, second]).clamp(min=0)
    return torch.logsumexp(-sharpness * distance, dim=0) - math.log(len(first))


def mined_matching(
    images: Tensor, texts: Tensor, image_partners: Tensor, text_partners: Tensor, *, temperature: float = 0.03
) -> Tensor:
    """RCM of every pair, (B,) in [0, 2]: ½ [(1 − p_ii) + (1 − pᵀ_ii)] with partners that were looked up (RCSL).

    Once of the images with their partners, once of the texts with theirs. A partner that was looked up is a noisy
    label, so it is the form of RCL that tolerates noise ("mae").

    Args:
        images, texts: v and t, (B, D).
        image_partners: text vectors that stand for the texts of the images, (B, D).
        text_partners: image vectors that stand for the images of the texts, (B, D).
        temperature: τ > 0.
    """
    by_image = complementary_contrastive(products(images, image_partners), temperature=temperature, form="mae")
    by_text = complementary_contrastive(products(text_partners, texts), temperature=temperature, form="mae")
    return (by_image + by_text) / 2
