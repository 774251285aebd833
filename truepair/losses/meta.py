"""The two formulas of MSCN: the margin that a pair's score gives it, and what its similarity head learns from.

Source: "Noisy Correspondence Learning with Meta Similarity Correction" (CVPR 2023).
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from truepair.losses.similarity_matrix import check_labels, check_similarity


def score_margin(scores: Tensor, margin: float) -> Tensor:
    """Margin of every pair, (B,): α s²/(s² + (1 − s)²), from 0 at s = 0 to α at s = 1.

    Args:
        scores: s, (B,) in [0, 1]. No gradient flows into them.
        margin: α.

    Raises:
        InputError: a score lies outside [0, 1].
    """
    check_labels(scores, len(scores))
    square, rest = scores.detach().square(), (1 - scores.detach()).square()
    return margin * square / (square + rest)


def meta_cross_entropy(logits: Tensor) -> Tensor:
    """The mean binary cross entropy (0-d) of M known pairs and as many wrong ones.

    Args:
        logits: (M, M) scores before σ, known pairs on the diagonal; the wrong pair of image i is text i + 1.

    Raises:
        InputError: the matrix is not square and finite.
    """
    check_similarity(logits)
    known, wrong = logits.diagonal(), logits.roll(-1, dims=1).diagonal()
    return (softplus(-known).mean() + softplus(wrong).mean()) / 2
