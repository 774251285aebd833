"""The confident set: of every class the pairs whose image and text are classified most alike (UOT-RCL)."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError


def confident_pairs(image_probability: Tensor, text_probability: Tensor, *, per_class: int = 5) -> Tensor:
    """Ids of the confident pairs, ascending, int64 (UOT-RCL, eq. 4, 5).

    A pair belongs to the class of its largest mean prediction, the first of equals. Of each class the `per_class`
    pairs of the smallest Jensen–Shannon divergence are confident, the lower id first where they tie; all of them where
    there are fewer, none where nobody is predicted to be of the class.

    Args:
        image_probability: p^v, (N, K), rows that sum to 1.
        text_probability: p^t, (N, K).
        per_class: at least 1.

    Raises:
        InputError: the shapes differ, a probability is negative or not finite, or `per_class` is below 1.
    """
    if per_class < 1:
        raise InputError(f"per_class is {per_class}; expected at least 1")
    divergence = jensen_shannon(image_probability, text_probability)
    predicted = (image_probability.detach().double() + text_probability.detach().double()).argmax(dim=1)
    by_divergence = divergence.argsort(stable=True)
    order = by_divergence[predicted[by_divergence].argsort(stable=True)]
    sizes = predicted.bincount(minlength=image_probability.shape[1])
    first_of_class = sizes.cumsum(dim=0) - sizes
    place = torch.arange(len(order), device=order.device) - first_of_class[predicted[order]]
    return order[place < per_class].sort().values


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """Divergence of each row of p from the same row of q, (N,) float64 in [0, log 2]; it has no gradient.

    Σ_k m_k h(δ_k)/2 with m = (p + q)/2, δ = (p − q)/(p + q) and h(δ) = (1 + δ) log(1 + δ) + (1 − δ) log(1 − δ): the
    natural logarithm, exact at 0 · log 0 = 0, and no difference of large entropies where the two are nearly alike.

    Args:
        p, q: (N, K), rows that sum to 1.

    Raises:
        InputError: the shapes differ, or a probability is negative or not finite.
    """
    if p.shape != q.shape or p.ndim != 2 or not p.numel():
        raise InputError(f"probabilities of shape {tuple(p.shape)} and {tuple(q.shape)}; expected (N, K) for both")
    p, q = _checked("image", p), _checked("text", q)
    both = p + q
    lean = (p - q) / both.masked_fill(both == 0, 1.0)
    halves = torch.special.xlog1py(1 + lean, lean) + torch.special.xlog1py(1 - lean, -lean)
    divergence: Tensor = (both * halves).sum(dim=1) / 4
    return divergence


def _checked(modality: str, probability: Tensor) -> Tensor:
    values = probability.detach().double()
    if not bool(((values >= 0) & (values < torch.inf)).all()):
        row, column = (~((values >= 0) & (values < torch.inf))).nonzero()[0].tolist()
        raise InputError(
            f"{modality}_probability[{row}, {column}] is {values[row, column].item()}; expected a probability. Look "
            "for NaN in the features or a learning rate that is too high"
        )
    return values
