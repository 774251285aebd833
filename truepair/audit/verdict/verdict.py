"""From the evidence on every pair to one calibrated probability, by synthetic mismatches.

Nobody knows which of the given pairs are wrong, but wrong pairs are easily made (`synthetic`). Scored in the very same
way, they show how the evidence of a mismatched pair is distributed, f₀. The given pairs are distributed as f = (1 − π)
f_matched + π f₀ with an unknown share π of mismatched ones, so that

    P(mismatched | evidence) = π f₀(evidence)/f(evidence),

and where matched pairs hardly ever are, at the low end, f/f₀ is π itself. No threshold is set by hand, and nothing
assumed of the matched pairs but that a better score never speaks for a mismatch. (Learning from positive and unlabelled
data; the choice of the low end follows best bin estimation, Garg et al., NeurIPS 2021.)

Whether there are near mismatches as well, f₀ being a mixture of both kinds, is asked in `near_mismatches`.

Evidence of what training remembers is known only of mismatches that models were trained on, of which there should be
few. So π is found by what held-out models say as well, who may be shown any number (`HeldOut`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truepair.audit.result import Verdict
from truepair.audit.scoring.evidence import HeldOut, checked_evidence, varying
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.scoring.synthetic_mismatches import KINDS
from truepair.audit.verdict.calibration import Calibration
from truepair.audit.verdict.local_share import LocalShare, share_below_median
from truepair.audit.verdict.low_end import LEAST_SYNTHETIC, WIDTH, Estimate, estimate_share, pooled
from truepair.audit.verdict.mixture import mixture_verdict
from truepair.audit.verdict.near_mismatches import near_mismatches, near_weight, record
from truepair.data.pairs import Array, BoolArray
from truepair.errors import InputError
from truepair.seeding import generator

ROUNDS = 3
FIT_AT_MOST = 200_000
FAR = 100.0

NO_SIGN = 0.01
"""Below this the estimate is what unusual but right pairs look like; it is not taken as a sign of noise."""


def verdict_of_scored(scored: ScoredPairs, *, seed: int = 0) -> Verdict:
    """The verdict on all scored pairs. Those that the scoring model was trained on are judged apart from the others, by
    a mixture of two groups: synthetic mismatches tell nothing of pairs that a model knows by heart.
    """
    evidence = scored.given.log_odds
    trained_on = np.zeros(len(evidence), dtype=bool) if scored.trained_on is None else scored.trained_on
    parts = []
    if trained_on.any():
        parts.append((trained_on, mixture_verdict(evidence[trained_on], seed=seed)))
    if not trained_on.all():
        unseen = evidence[~trained_on]
        known = ~np.isnan(unseen).any(axis=0)  # not the memory, where only the others have one
        parts.append((~trained_on, unseen_verdict(unseen[:, known], scored, seed)))
    verdict = parts[0][1] if len(parts) == 1 else joined(parts)
    return replace(verdict, details={**verdict.details, "bank": scored.bank, **scored.details})


def unseen_verdict(evidence: Array, scored: ScoredPairs, seed: int) -> Verdict:
    """Of pairs that the scoring model was not trained on."""
    synthetic = {kind: known.log_odds for kind, known in scored.synthetic.items()}
    if len(synthetic.get("random", ())) < LEAST_SYNTHETIC:
        return mixture_verdict(evidence, seed=seed)
    local = share_below_median(scored.local) if scored.local else None
    return judge(evidence, synthetic, held_out=scored.held_out, local=local, seed=seed)


def joined(parts: Sequence[tuple[BoolArray, Verdict]]) -> Verdict:
    """The verdicts on parts of the pairs as one; shares and their intervals count as the parts do."""
    size = len(parts[0][0])
    p_match, flagged = np.empty(size, dtype=np.float32), np.empty(size, dtype=bool)
    for rows, verdict in parts:
        p_match[rows], flagged[rows] = verdict.p_match, verdict.flagged
    weights = [float(rows.mean()) for rows, _ in parts]

    def mean(name: str) -> float:
        return float(sum(weight * getattr(verdict, name) for weight, (_, verdict) in zip(weights, parts, strict=True)))

    doubts = [verdict.doubt for _, verdict in parts if verdict.doubt]
    return Verdict(
        p_match=p_match,
        flagged=flagged,
        noise_rate=mean("noise_rate"),
        noise_rate_low=mean("noise_rate_low"),
        noise_rate_high=mean("noise_rate_high"),
        two_groups=any(verdict.two_groups for _, verdict in parts),
        doubt="; ".join(doubts) if len(doubts) == len(parts) else None,
        details={**parts[0][1].details, **parts[-1][1].details},
    )


def judge(
    evidence: Array,
    synthetic: Mapping[str, Array],
    *,
    held_out: HeldOut | None = None,
    local: LocalShare | None = None,
    seed: int = 0,
) -> Verdict:
    """What to believe of every given pair, and of all together.

    Args:
        evidence: (M, d) what speaks for each given pair, a column a kind of evidence, larger = better matched, on a
            scale of log odds or the like; any float dtype.
        synthetic: the same of pairs known to be mismatched, (P, d) each: `random`, and `near` where there are such.
        held_out: evidence of which there are more known mismatches; π is found by both.
        local: π by local ranks; without it near mismatches are not asked for.
        seed: of the pairs that weights are learned from, where there are very many.

    Returns:
        p_match, flagged (p_match < 0.5), π with its 95 % interval, and whether there are two groups. Without two groups
        the few pairs that are as bad as chance are still flagged, at most the share π of them.

    Raises:
        InputError: evidence or synthetic mismatches are empty, too few, not finite, or of different width or kind.
    """
    given = checked_evidence(evidence, "evidence")
    rulers = {kind: checked_evidence(rows, f"synthetic {kind}") for kind, rows in synthetic.items() if len(rows)}
    check_rulers(given, rulers)
    if not varying(np.concatenate([given, *rulers.values()])).any():
        return nothing_told(len(given), rulers)
    rng = generator(seed, "audit verdict")
    random = Ruler.of({"random": rulers["random"]}, {"random": 1.0})
    weights = combine(given, random, rng)
    estimate = seen = estimate_share(given @ weights, random.rows @ weights)
    if held_out is not None and len(held_out.known) >= LEAST_SYNTHETIC:
        estimate = pooled(seen, held_out_share(held_out, rng))
        weights = combine(given, random, rng, share=estimate.share)
    found = near_mismatches(estimate, local)
    ruler, share = random, found.share
    near = 1 - estimate.share / share if found.believed else 0.0  # as a part of the mismatched pairs
    if found.believed and "near" in rulers:
        scores = (given @ weights, rulers["random"] @ weights, rulers["near"] @ weights)
        near = near_weight(*scores, share=share, quantile=seen.quantile)
        ruler = Ruler.of(rulers, {"random": 1 - near, "near": near})
        of_both = combine(given, ruler, rng, share=share)
        weights = of_both if estimate.share <= NO_SIGN else mean_weights(given, weights, of_both)
    curve = Calibration.of(given @ weights, ruler.rows @ weights, ruler.weights, share)
    p_match = curve(given @ weights)
    low = max(share - WIDTH * found.error, 0.0)
    high = min(max(share + WIDTH * found.error, found.at_most), 1.0)
    two_groups = share > NO_SIGN and (low > NO_SIGN / 2 or found.believed)
    return Verdict(
        p_match=p_match.astype(np.float32),
        flagged=p_match < 0.5,
        noise_rate=float(share),
        noise_rate_low=float(low),
        noise_rate_high=float(high),
        two_groups=bool(two_groups),
        doubt=None if two_groups else doubt_of(high),
        details={
            "synthetic_mismatches": {kind: len(rows) for kind, rows in rulers.items()},
            "weights": [round(float(weight), 6) for weight in weights],
            "low_end": round(estimate.quantile, 4),
            "random_only": round(estimate.share, 4),
            "near": record(found, local, near),
            "posterior_mean": round(float(1 - p_match.mean()), 6),
        },
    )


def held_out_share(held_out: HeldOut, rng: np.random.Generator) -> Estimate:
    """π, by evidence of which many mismatches are known."""
    given, known = (checked_evidence(rows, "held-out evidence") for rows in (held_out.given, held_out.known))
    weights = combine(given, Ruler.of({"random": known}, {"random": 1.0}), rng)
    return estimate_share(given @ weights, known @ weights)


def nothing_told(pairs: int, rulers: Mapping[str, Array]) -> Verdict:
    """Where all pairs and the known mismatches have the very same evidence: anything may be true."""
    return Verdict(
        p_match=np.full(pairs, 0.5, dtype=np.float32),
        flagged=np.zeros(pairs, dtype=bool),
        noise_rate=0.0,
        noise_rate_low=0.0,
        noise_rate_high=1.0,
        two_groups=False,
        doubt="the evidence is the same for every pair and for those known to be mismatched: nothing can be told by it",
        details={"synthetic_mismatches": {kind: len(rows) for kind, rows in rulers.items()}},
    )


def doubt_of(high: float) -> str:
    return (
        f"at most {100 * high:.1f} % of the pairs score like mismatched ones, which right but unusual pairs do as well"
    )


def check_rulers(given: Array, rulers: Mapping[str, Array]) -> None:
    """Refuse synthetic that cannot be measured by.

    Raises:
        InputError: see `judge`.
    """
    if len(rulers.get("random", ())) < LEAST_SYNTHETIC:
        raise InputError(
            f"{len(rulers.get('random', ()))} pairs known to be mismatched; at least {LEAST_SYNTHETIC} are needed to "
            "measure by. Audit more pairs"
        )
    for kind, rows in rulers.items():
        if kind not in KINDS:
            raise InputError(f"synthetic mismatches are of the kind {kind!r}; expected {' or '.join(KINDS)}")
        if given.shape[1] != rows.shape[1]:
            raise InputError(
                f"evidence has {given.shape[1]} columns, synthetic {kind} {rows.shape[1]}; expected the same"
            )


@dataclass(frozen=True)
class Ruler:
    """Known mismatches of one or more kinds as one sample of f₀: rows (P, d), and weights (P,) that sum to 1."""

    rows: Array
    weights: Array

    @classmethod
    def of(cls, rulers: Mapping[str, Array], shares: Mapping[str, float]) -> Ruler:
        total = sum(shares[kind] for kind in rulers)
        each = [np.full(len(rows), shares[kind] / total / len(rows)) for kind, rows in rulers.items()]
        return cls(np.concatenate(list(rulers.values())), np.concatenate(each))


# --- One score of all kinds of evidence ---------------------------------------------------------------------------


def combine(given: Array, ruler: Ruler, rng: np.random.Generator, share: float | None = None) -> Array:
    """Weights (d,) ≥ 0 of the evidence in one score, in units of its spread among the given pairs.

    Starts with equal weights, then learns to tell the known mismatched pairs, and the given ones as far as they are
    believed mismatched, from the given ones as far as they are believed matched (logistic regression on the pairs'
    probabilities, a few rounds). A weight that would turn evidence round is 0.

    Args:
        share: π where it is known; None estimates it in every round.
    """
    usable = varying(given)
    spread = np.where(usable, given.std(axis=0), 1.0)
    weights: Array = usable / spread
    if usable.sum() < 2:
        return weights if usable.any() else np.ones(given.shape[1])
    if len(given) > FIT_AT_MOST:
        given = given[np.sort(rng.choice(len(given), FIT_AT_MOST, replace=False))]
    for _ in range(ROUNDS):
        score, known = given @ weights, ruler.rows @ weights
        now = estimate_share(score, known).share if share is None else share
        if now <= NO_SIGN:
            break  # there is nothing to learn a mismatch from but the synthetic mismatches itself
        matched = Calibration.of(score, known, ruler.weights, now)(score)
        learned = np.zeros(len(spread))
        learned[usable] = np.maximum(
            _logistic(
                np.ascontiguousarray((given / spread)[:, usable]),
                np.ascontiguousarray((ruler.rows / spread)[:, usable]),
                ruler.weights,
                matched,
            ),
            0.0,
        )
        if not learned.any():
            break
        weights = learned / spread
    return weights


def mean_weights(given: Array, first: Array, second: Array) -> Array:
    """The mean of two weightings of evidence, each in units of its score's spread.

    Near mismatches that are made of pairs most alike resemble matched pairs more than those in the data do, so what is
    learned from random ones counts as much.
    """
    first, second = (weights / max(float((given @ weights).std()), 1e-300) for weights in (first, second))
    mean: Array = (first + second) / 2
    return mean


def _logistic(given: Array, known: Array, known_weights: Array, matched: Array) -> Array:
    from sklearn.linear_model import LogisticRegression

    # The solver stalls where the mean of a column (its spread is 1) is very far from 0.
    mean = given.mean(axis=0)
    rows = np.concatenate([given, given, known]) - np.where(np.abs(mean) > FAR, mean, 0.0)
    labels = np.concatenate([np.ones(len(given)), np.zeros(len(given) + len(known))])
    # The known ones count as much as the believed ones together, so that neither drowns the other.
    believed = max(float((1 - matched).sum()), 1.0)
    weights = np.concatenate([matched, 1 - matched, known_weights * believed])
    learned: Array = LogisticRegression(C=1.0, max_iter=200).fit(rows, labels, sample_weight=weights).coef_[0]
    return learned
