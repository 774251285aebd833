"""The verdict where no synthetic mismatches can be scored the same way: a mixture of two groups, if there are two."""

from __future__ import annotations

import numpy as np

from truepair.audit.result import Verdict
from truepair.audit.scoring.evidence import checked_evidence, varying
from truepair.correspondence.mixture import fit_mixture
from truepair.data.pairs import Array
from truepair.seeding import generator

RESAMPLED, RESAMPLED_PAIRS = 100, 5000


def mixture_verdict(evidence: Array, *, seed: int = 0) -> Verdict:
    """What to believe of every pair: the posterior of the upper of two normal distributions of the summed evidence.

    Asked first is whether two groups explain the evidence better than one (BIC, and Ashman's D > 2): else nothing is
    flagged and the noise rate is 0, with an interval up to 1: two groups that overlap look like one, and so do pairs
    that are all mismatched.

    Args:
        evidence: (M, d) larger = better matched; columns are brought to the same spread and summed.
        seed: of the resampled pairs that give the interval.

    Raises:
        InputError: there is no evidence, or a value is not finite.
    """
    evidence = checked_evidence(evidence, "evidence")
    score = (evidence / np.where(varying(evidence), evidence.std(axis=0), 1.0)).sum(axis=1)
    mixture = fit_mixture(score)
    rng = generator(seed, "audit mixture")
    size = min(len(score), RESAMPLED_PAIRS)
    shares = []
    for _ in range(RESAMPLED):
        again = fit_mixture(rng.choice(score, size))
        shares.append(again.weights[0] if again.two_components else 0.0)
    spread_of_share = float(np.std(shares)) * (size / len(score)) ** 0.5
    details = {
        "means": [round(float(mean), 4) for mean in mixture.means],
        "weights": [round(float(weight), 4) for weight in mixture.weights],
        "resampled_with_two_groups": float(np.mean(np.array(shares) > 0)),
    }
    if not mixture.two_components:
        return Verdict(
            p_match=np.ones(len(score), dtype=np.float32),
            flagged=np.zeros(len(score), dtype=bool),
            noise_rate=0.0,
            noise_rate_low=0.0,
            noise_rate_high=1.0,
            two_groups=False,
            doubt=mixture.doubt,
            details=details,
        )
    p_match = mixture.posterior(score)
    share = float(1 - p_match.mean())
    return Verdict(
        p_match=p_match.astype(np.float32),
        flagged=p_match < 0.5,
        noise_rate=share,
        noise_rate_low=max(share - 1.96 * spread_of_share, 0.0),
        noise_rate_high=min(share + 1.96 * spread_of_share, 1.0),
        two_groups=True,
        details=details,
    )
