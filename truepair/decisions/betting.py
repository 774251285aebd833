"""An interval that may be looked at after every decision: a confidence sequence by betting.

Who bets that the share A exceeds m multiplies the stake at each draw by

    1 + λ · (Z − m),   λ = min( c · N/|U|, 0.95/(m − least Z) ),

which never loses it all. Were A = m, the mean stake would stay as it is, and the probability that it ever reaches 2/α
be α/2 at most (Ville's inequality). A few c share one stake; the m against which it has reached 2/α are refused from
below, and in the same way from above. Nothing is asked of sample sizes, and whoever stops when the interval looks good
does no harm (Waudby-Smith and Ramdas, JRSS B 2024; of draws by unequal probabilities with a model's predictions:
Shekhar et al., UAI 2023).
"""

from __future__ import annotations

import numpy as np

from truepair.data.pairs import Array
from truepair.decisions.draws import Draws

BETS = 2.0 * 0.4 ** np.arange(6.0)
"""c: the first suits some 50 draws of a good audit, the last 10,000."""
_MOST = 0.95
_STEPS = 30


def lower_end(draws: Draws, y: Array, alpha: float) -> float:
    """The largest refused share, or what the known mismatches alone come to; in [0, 1].

    Args:
        y: (T,) judgements of the decided pairs, 1 where one is called mismatched.
        alpha: both ends of an interval fail with this probability.
    """
    certain = float(y.sum()) / draws.size
    if not draws.used.any():
        return certain
    values, least, bets = draws.values(y), draws.least(y), BETS[:, None] * (draws.size / draws.pool[draws.used])

    def refused(m: float) -> bool:
        """Whether the stake against m ever reached 2/α. It falls as m grows: what is refused lies below the end."""
        growth = 1 + np.minimum(bets, _MOST / np.maximum(m - least, 1e-12)) * (values - m)
        stakes = np.cumsum(np.log(np.maximum(growth, 1e-300)), axis=1)
        top = stakes.max(axis=0)
        together = top + np.log(np.exp(stakes - top).mean(axis=0))
        return bool(together.max() >= np.log(2 / alpha))

    if not refused(certain):
        return certain
    low, high = certain, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low
