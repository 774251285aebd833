"""Losses of methods that learn from class labels: every class has a prototype, an item goes to the nearest.

Shape letters: B pairs, K classes, D width of the encodings. `logits` are cosines to the prototypes over a temperature.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from truepair.errors import InputError


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """−Σ_k y_k log softmax(logits)_k, (B,) (UOT-RCL, eq. 2 and 15, one modality).

    Args:
        logits: (B, K).
        target: (B, K) ≥ 0; a row that sums to less than one counts that much less.

    Raises:
        InputError: shapes differ, logits are not finite, or a target is negative or not finite.
    """
    check_logits(logits)
    if target.shape != logits.shape:
        raise InputError(f"target has shape {tuple(target.shape)}; expected that of the logits, {tuple(logits.shape)}")
    usable = (target >= 0) & (target < torch.inf)  # false for NaN
    if not bool(usable.all()):
        row, column = (~usable).nonzero()[0].tolist()
        raise InputError(f"target[{row}, {column}] is {target[row, column].item()}; expected a share of a class")
    return -(target * logits.log_softmax(dim=1)).sum(dim=1)


def robust_clustering(logits: Tensor, labels: Tensor) -> Tensor:
    """log(1 − p_y), (B,): the nearer a pair is to its class, the more it is pulled (MRL, eq. 5).

    Cross entropy pulls those hardest that fit worst, which are the wrong labels; this one lets them be.

    Args:
        logits: (B, K), K ≥ 2.
        labels: (B,) int64.

    Raises:
        InputError: fewer than two classes, labels out of range, or logits that are not finite.
    """
    check_logits(logits)
    classes = logits.shape[1]
    if classes < 2:
        raise InputError(f"robust clustering tells classes apart, found {classes}; expected at least 2")
    if len(labels) and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        raise InputError(f"labels run from {int(labels.min())} to {int(labels.max())}; expected 0 … {classes - 1}")
    own = torch.nn.functional.one_hot(labels, classes).bool()
    return logits.masked_fill(own, -torch.inf).logsumexp(dim=1) - logits.logsumexp(dim=1)


def multimodal_contrast(images: Tensor, texts: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Each of the 2B items against all others of both modalities, its partner the right one, (B,) (MRL, eq. 6, 7).

    An item is not compared with itself: eq. 6 prints that term in both sums, the released code takes it out.

    Args:
        images, texts: (B, D) unit rows; row i of both is pair i.
        temperature: τ > 0.

    Raises:
        InputError: shapes differ, or τ is not above 0.
    """
    if images.shape != texts.shape or not temperature > 0:
        raise InputError(
            f"images {tuple(images.shape)}, texts {tuple(texts.shape)}, temperature {temperature}; expected equal "
            "shapes and a temperature above 0"
        )
    items = torch.cat([images, texts])
    count = len(images)
    scores = (items @ items.T / temperature).masked_fill(
        torch.eye(2 * count, dtype=torch.bool, device=items.device), -torch.inf
    )
    partner = torch.arange(2 * count, device=items.device).roll(count)
    loss = cross_entropy(scores, partner, reduction="none")
    return loss[:count] + loss[count:]


def early_learning(probability: Tensor, target: Tensor) -> Tensor:
    """log(1 − ⟨p, t⟩), (B,): what was predicted early is held on to (ELR, Liu et al. 2020, eq. 6).

    Args:
        probability: (B, K) rows that sum to one.
        target: (B, K) ≥ 0, the running mean of earlier predictions; rows sum to at most one.

    Raises:
        InputError: shapes differ.
    """
    if probability.shape != target.shape:
        raise InputError(f"probability {tuple(probability.shape)} and target {tuple(target.shape)} differ in shape")
    least = torch.finfo(probability.dtype).eps  # two one-hot rows of one class would make it log 0
    return torch.log((1 - (probability * target).sum(dim=1)).clamp(min=least))


def check_logits(logits: Tensor) -> None:
    if logits.ndim != 2 or not bool(torch.isfinite(logits.detach()).all()):
        raise InputError(
            f"logits of shape {tuple(logits.shape)} must be (B, K) and finite; is the learning rate too high?"
        )
