"""What it costs to give a pair a class, and the labels that the cheapest transport gives (UOT-RCL)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from truepair.correspondence.neighbours import nearest_among, nearest_neighbours
from truepair.errors import InputError
from truepair.transport import partial_transport

SMALLEST_IN_RATIO = 0.1
SMALLEST_SUPPORT = 1e-8
ROWS_AT_ONCE = 4096


@torch.no_grad()
def label_cost(
    image_bank: Tensor,
    text_bank: Tensor,
    targets: Tensor,
    confident: Tensor | None = None,
    *,
    neighbours: int,
) -> Tensor:
    """C, (N, K): small where those like the pair, by image and by text, have the class (UOT-RCL, eq. 6–8).

    C_ik = −log(C^v_i s^v_ik + C^t_i s^t_ik). s^v_ik is the mean over the samples j nearest to image i, itself the first
    of them, of cos(z^v_i, z^v_j) y_jk. C^v_i = cos(z^v_i, z^v_c)/cos(z^t_i, z^t_c), with c the confident pair whose
    image is nearest to image i: above 1 where the text is less like that of c than the image is. s^t and C^t are the
    mirror image. Cosines are clamped to [0, 1], to [0.1, 1] in the ratio, the argument of the logarithm at 1e-8; ties
    go to the lower id. No pair is its own nearest confident pair unless it is the only one.

    Args:
        image_bank: z^v of all pairs, (N, d), any length but zero; float32 is enough.
        text_bank: z^t, (N, e).
        targets: y, (N, K), ≥ 0.
        confident: ids of the confident set, int64, distinct, at least one; None leaves the ratios out (C^v = C^t = 1).
        neighbours: nearest samples, at least 1; all pairs where there are fewer.

    Raises:
        InputError: a shape does not fit, a feature or target is not finite, a target is negative, an id is not that of
            a pair or repeated, or `neighbours` is below 1.
    """
    _check_sizes(image_bank, text_bank, targets)
    if neighbours < 1:
        raise InputError(f"neighbours is {neighbours}; expected at least 1")
    images, texts = (normalize(bank.detach().float(), dim=1) for bank in (image_bank, text_bank))
    targets = targets.detach().to(images)
    support = torch.zeros_like(targets)
    for here, there in ((images, texts), (texts, images)):
        votes = _votes(here, targets, neighbours)
        if confident is not None:
            within, nearest = nearest_among(here, confident)
            votes *= (_in_ratio(within) / _in_ratio(_row_cosines(there, nearest)))[:, None]
        support += votes
    return -support.clamp(min=SMALLEST_SUPPORT).log()


def running_targets(targets: Tensor, predicted: Tensor, *, momentum: float) -> Tensor:
    """γ y + (1 − γ) onehot(predicted), a new (N, K) tensor (UOT-RCL, eq. 9).

    Args:
        targets: y, (N, K).
        predicted: (N,) int64, the class predicted for each pair.
        momentum: γ in [0, 1].

    Raises:
        InputError: a shape does not fit, a class is out of range, or the momentum is not in [0, 1].
    """
    if not 0 <= momentum <= 1:
        raise InputError(f"momentum is {momentum}; expected a share from 0 to 1")
    if targets.ndim != 2 or predicted.shape != targets.shape[:1] or predicted.dtype != torch.int64:
        raise InputError(
            f"targets have shape {tuple(targets.shape)}, predicted classes {predicted.dtype} of shape "
            f"{tuple(predicted.shape)}; expected (N, K) and int64 of shape (N,)"
        )
    outside = (predicted < 0) | (predicted >= targets.shape[1])
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise InputError(f"predicted[{row}] is {int(predicted[row])}; expected a class 0 … {targets.shape[1] - 1}")
    moved = targets.detach() * momentum
    moved[torch.arange(len(moved), device=moved.device), predicted.to(moved.device)] += 1 - momentum
    return moved


@torch.no_grad()
def corrected_labels(
    cost: Tensor, class_mass: Tensor, *, mass: float, epsilon: float = 0.05, surplus_cost: float = torch.inf
) -> Tensor:
    """N Ŷ, (N, K) ≥ 0: each row the label of a pair, its sum the confidence in [0, 1] (UOT-RCL, eq. 10–14).

    The cheapest `mass` of all pairs gets labels; class k gets at most its share of the classes. With a surplus of cost
    0, as the paper prints it, more than `mass` gets labels where costs are below 0.

    Args:
        cost: (N, K), finite, as from `label_cost`.
        class_mass: r, (K,) ≥ 0, uniform or given; only the ratios count.
        mass: s in (0, 1], the share of the pairs' mass that gets labels.
        epsilon: entropic regularisation in units of the cost, > 0.
        surplus_cost: what a unit of labels beyond `mass` costs; +inf: there is none beyond.

    Raises:
        InputError: a shape does not fit, a cost is not finite, a class mass is negative or all are zero, or `mass` or
            `epsilon` is out of range.
    """
    if cost.ndim != 2 or not cost.numel() or class_mass.shape != cost.shape[1:]:
        raise InputError(
            f"cost has shape {tuple(cost.shape)}, class_mass {tuple(class_mass.shape)}; expected (N, K) and (K,)"
        )
    if not bool(torch.isfinite(cost).all()):
        raise InputError("cost is not finite everywhere; look for NaN in the features")
    count = len(cost)
    rows = torch.full((count,), 1 / count, dtype=torch.float64, device=cost.device)
    columns = _shares(class_mass).to(cost.device)
    plan = partial_transport(cost, rows, columns, mass=mass, epsilon=epsilon, surplus_cost=surplus_cost)
    labels = count * plan
    return labels / labels.sum(dim=1, keepdim=True).clamp(min=1.0)  # of rounding


def _shares(class_mass: Tensor) -> Tensor:
    masses = class_mass.detach().double()
    usable = (masses >= 0) & (masses < torch.inf)
    if not bool(usable.all()) or not bool((masses > 0).any()):
        raise InputError(
            f"class_mass runs from {masses.amin().item()} to {masses.amax().item()}; expected finite masses of at "
            "least 0, some above"
        )
    return masses / masses.sum()


def _in_ratio(cosine: Tensor) -> Tensor:
    return cosine.clamp(SMALLEST_IN_RATIO, 1.0)


def _row_cosines(bank: Tensor, other: Tensor) -> Tensor:
    """⟨row i, row other_i⟩, (N,), without a second bank."""
    parts = torch.arange(len(bank), device=bank.device).tensor_split(1 + len(bank) // ROWS_AT_ONCE)
    return torch.cat([(bank[rows] * bank[other[rows]]).sum(dim=1) for rows in parts])


def _votes(bank: Tensor, targets: Tensor, neighbours: int) -> Tensor:
    """Mean over the nearest samples of cosine · target, (N, K): the row itself is the first of them."""
    similarity, index = nearest_neighbours(bank, neighbours - 1)
    if not index.shape[1]:
        return targets.clone()
    others = embedding_bag(index, targets, per_sample_weights=similarity.clamp(0.0, 1.0), mode="sum")
    return (targets + others) / (1 + index.shape[1])


def _check_sizes(image_bank: Tensor, text_bank: Tensor, targets: Tensor) -> None:
    fits = image_bank.ndim == text_bank.ndim == targets.ndim == 2
    if not fits or not len(image_bank) == len(text_bank) == len(targets):
        raise InputError(
            f"image_bank has shape {tuple(image_bank.shape)}, text_bank {tuple(text_bank.shape)}, targets "
            f"{tuple(targets.shape)}; expected (N, d), (N, e) and (N, K): one row a pair in each"
        )
    usable = (targets >= 0) & (targets < torch.inf)
    if not bool(usable.all()):
        row, column = (~usable).nonzero()[0].tolist()
        raise InputError(f"targets[{row}, {column}] is {targets[row, column].item()}; expected a share of a class")
