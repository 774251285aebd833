"""Figures of a formula alone: they need neither records nor runs."""

from __future__ import annotations

import math

import numpy as np

from truepair.pages.kit.canvas import RUN_COLOURS, RUN_MARKERS, empty_figure, legend_above, styled
from truepair.reproduce.figures.drawn import Drawn

STEPS = 21


def risk_bounds(*, captions: int, rate: float) -> Drawn:
    """C and C′, how far the risks of the complementary contrastive loss L_r can be from those without noise, over its
    exponent q (CRCL, theorem 1 and figure 2).

    Args:
        captions: N, those of a batch; with N η / (N − 1) below 1.
        rate: η, the noise rate, in (0, 1).
    """
    exponents = np.linspace(0, 1, STEPS)
    found = {name: [bounds(captions, rate, q)[k] for q in exponents] for k, name in enumerate(("C", "C′"))}
    with styled():
        figure, axes = empty_figure("q", "bound of the difference of risks")
        handles = []
        for (name, values), colour, marker in zip(found.items(), RUN_COLOURS, RUN_MARKERS, strict=False):
            handles += axes.plot(exponents, values, color=colour, marker=marker, markevery=4, label=name)
        legend_above(figure, handles)
    curves = {name: [[float(q), value] for q, value in zip(exponents, found[name], strict=True)] for name in found}
    return Drawn(figure, {"captions": captions, "rate": rate, "curves": curves})


def bounds(captions: int, rate: float, exponent: float) -> tuple[float, float]:
    """(C, C′): −2η (A_max^(1−q) − A_min^(1−q)) / (1 − N η / (N − 1)), and the same without the division and the sign.

    A is Σ_j tan p_j, which lies between N tan(1/N), where all N captions are as probable, and tan 1.
    """
    least, most = captions * math.tan(1 / captions), math.tan(1)
    spread = 2 * rate * (most ** (1 - exponent) - least ** (1 - exponent))
    return -spread / (1 - captions * rate / (captions - 1)), spread
