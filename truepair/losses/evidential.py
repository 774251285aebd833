"""The evidential loss of UGNCL: a Dirichlet distribution over the candidates is to point at the partner."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError

# Above this the asymptotic series below is exact to float64, below it the functions themselves are.
SERIES_FROM = 16.0
# B_2k/(2k (2k − 1)) and B_2k/2k, k = 1 … 5: the series of log Γ in x^(1−2k), and of −ψ in x^(−2k), by Stirling.
LOG_GAMMA_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)


def evidential(alpha: Tensor, target: Tensor, *, kl_weight: float = 0.1) -> Tensor:
    """Loss of every query, (B,): expected squared error, plus ξ1 times misplaced evidence (UGNCL, eq. 12–14).

    Σ_j (y_j − α_j/L)² + α_j (L − α_j)/(L² (L + 1)) + ξ1 KL(Dir(α̃) ‖ Dir(1)), with L = Σ α and α̃ = y + (1 − y) ⊙ α.
    Computed in float64 (float32 where the device has no float64) and returned in the dtype of `alpha`.

    Args:
        alpha: α = e + 1 ≥ 1, (B, K), one row a query; any float dtype.
        target: y, (B, K) in [0, 1]; for pairs ỹ_i on the diagonal and 0 elsewhere. No gradient flows into it.
        kl_weight: ξ1 ≥ 0.

    Raises:
        InputError: the shapes differ or are not (B, K), an α is below 1 or not finite, a target lies outside [0, 1], or
            ξ1 < 0.
    """
    _check_cells("alpha", alpha, alpha, lowest=1.0)
    _check_cells("target", target, alpha, lowest=0.0, highest=1.0)
    if not kl_weight >= 0:
        raise InputError(f"kl_weight is {kl_weight}; expected a value of at least 0")
    precise = torch.float32 if alpha.device.type == "mps" else torch.float64
    parameters, wanted = alpha.to(precise), target.detach().to(alpha.device, precise)
    strength = parameters.sum(dim=1, keepdim=True)
    expected = parameters / strength
    # α (L − α)/(L² (L + 1)) without squaring L, which a float32 could not hold
    variance = expected * (1 - expected) / (strength + 1)
    error = ((wanted - expected).square() + variance).sum(dim=1)
    divergence = divergence_from_uniform(wanted + (1 - wanted) * parameters)
    return (error + kl_weight * divergence).to(alpha.dtype)


def divergence_from_uniform(alpha: Tensor) -> Tensor:
    """KL(Dir(α) ‖ Dir(1)) of every row, (B,) ≥ 0 up to rounding (UGNCL, eq. 13); 0 where every α is 1.

    The printed sum log Γ(L) − log Γ(K) − Σ log Γ(α_k) + Σ (α_k − 1)(ψ(α_k) − ψ(L)) is a difference of terms of the size
    of L log L: at K = 512 and α = e¹⁰ float32 loses all of its digits. With h(x) = log Γ(x) − (x − 1) ψ(x) + x, which
    only grows like log x, it is the same as h(L) − Σ h(α_k) + (K − 1) ψ(L) − log Γ(K), because the added Σ α_k is L.

    Args:
        alpha: α > 0, (B, K).
    """
    candidates = torch.tensor(float(alpha.shape[1]), dtype=alpha.dtype, device=alpha.device)
    strength = alpha.sum(dim=1)
    return (
        _excess(strength)
        - _excess(alpha).sum(dim=1)
        + (candidates - 1) * torch.digamma(strength)
        - torch.lgamma(candidates)
    )


def _excess(x: Tensor) -> Tensor:
    """h(x) = log Γ(x) − (x − 1) ψ(x) + x, x > 0; for large x by the series in which x log x and x have cancelled."""
    near, far = x.clamp(max=SERIES_FROM), x.clamp(min=SERIES_FROM)
    exact = torch.lgamma(near) - (near - 1) * torch.digamma(near) + near
    # log Γ(x) = (x − ½) log x − x + ½ log 2π + G,  ψ(x) = log x − 1/(2x) − D,
    # so h(x) = ½ log x + ½ log 2π + ½ − 1/(2x) + G + (x − 1) D.
    inverse = 1 / far
    square = inverse * inverse
    gamma_rest = inverse * _polynomial(square, LOG_GAMMA_SERIES)
    digamma_rest_times_x = inverse * _polynomial(square, DIGAMMA_SERIES)
    half_log_two_pi = 0.9189385332046727
    series = 0.5 * far.log() + half_log_two_pi + 0.5 - 0.5 * inverse + gamma_rest + (1 - inverse) * digamma_rest_times_x
    return torch.where(x <= SERIES_FROM, exact, series)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """c_0 + c_1 x + c_2 x² + …"""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _check_cells(name: str, cells: Tensor, alpha: Tensor, *, lowest: float, highest: float = torch.inf) -> None:
    if cells.ndim != 2 or cells.shape != alpha.shape or cells.shape[1] == 0:
        raise InputError(
            f"{name} has shape {tuple(cells.shape)}, alpha {tuple(alpha.shape)}; expected (B, K) for both, K ≥ 1"
        )
    if not cells.is_floating_point():
        raise InputError(f"{name} is {cells.dtype}; expected a floating dtype")
    inside = (cells >= lowest) & (cells <= highest) & torch.isfinite(cells)
    if not bool(inside.all()):
        row, column = (~inside).nonzero()[0].tolist()
        raise InputError(
            f"{name}[{row}, {column}] is {cells[row, column].item()}; expected "
            + ("a value in [0, 1]" if highest == 1 else f"a finite value of at least {lowest:g}")
        )
