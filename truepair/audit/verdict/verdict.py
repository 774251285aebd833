"""From the evidence on every pair to one calibrated probability, by synthetic mismatches.

Nobody knows which of the given pairs are wrong, but wrong pairs are easily made. Scored in the very same way, they
show how the evidence of a mismatched pair is distributed, f₀. The given pairs are distributed as f = (1 − π) f_matched
+ π f₀ with an unknown share π of mismatched ones, so that

    P(mismatched | evidence) = π f₀(evidence)/f(evidence),

and where matched pairs hardly ever are, at the low end, f/f₀ is π itself. Nothing is assumed of the matched pairs but
that a better score never speaks for a mismatch (learning from positive and unlabelled data).

Three steps: how many (`share`), one score of all evidence (`score`), how probable (`probability`). A near mismatch is
one with the caption of a similar thing; f₀ is a mixture of random and near synthetic mismatches, as far as near ones
are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from truepair.audit.result import Share, Verdict
from truepair.audit.scoring.evidence import HeldOut, NearestCopies, checked_evidence, varying
from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.scoring.synthetic_mismatches import KINDS
from truepair.audit.verdict.mixture import mixture_verdict
from truepair.audit.verdict.near_share import NearShare, near_share
from truepair.audit.verdict.score import NO_SIGN, Synthetic, combine, guarded, mean_weights
from truepair.correspondence.calibration import Calibration
from truepair.correspondence.mixture_proportion import (
    LEAST_SYNTHETIC,
    WIDTH,
    Estimate,
    estimate_share,
    pooled,
)
from truepair.data.pairs import Array, BoolArray
from truepair.errors import InputError
from truepair.seeding import generator

MOST_NEAR = 0.99  # of the mismatched pairs: the lowest scores are a random mismatch's in any case
UNKNOWN = 0.5


def verdict_of_scored(scored: ScoredPairs, *, seed: int = 0) -> Verdict:
    """The verdict on all scored pairs. Those that the scoring model was trained on are decided apart from the others,
    by a mixture of two groups: synthetic mismatches tell nothing of pairs that a model knows by heart.
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
    return verdict_of_evidence(
        evidence, synthetic, held_out=scored.held_out, local=scored.local, nearest=scored.nearest, seed=seed
    )


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
        random=parts[-1][1].random,
        near=parts[-1][1].near,
        doubt="; ".join(doubts) if len(doubts) == len(parts) else None,
        details={**parts[0][1].details, **parts[-1][1].details},
    )


def verdict_of_evidence(
    evidence: Array,
    synthetic: Mapping[str, Array],
    *,
    held_out: HeldOut | None = None,
    local: Sequence[LocalRanks] = (),
    nearest: NearestCopies | None = None,
    seed: int = 0,
) -> Verdict:
    """What to believe of every given pair, and of all together.

    Args:
        evidence: (M, d) what speaks for each given pair, a column a kind of evidence, larger = better matched, on a
            scale of log odds or the like; any float dtype. The first column is the log odds of matching.
        synthetic: the same of synthetic mismatches, (P, d) each: `random`, and `near` where there are such.
        held_out: evidence of which there are more synthetic mismatches; π is found by both.
        local: local ranks; without them near mismatches are not asked for.
        nearest: the hardest mismatches, which the score is to rank no worse than the plain similarity.
        seed: of the pairs that weights are learned from, where there are very many.

    Returns:
        p_match, flagged (p_match < 0.5), both shares with their 95 % intervals, and whether there are two groups.
        Without two groups the few pairs that are as bad as chance are still flagged, at most the share π of them.

    Raises:
        InputError: evidence or synthetic mismatches are empty, too few, not finite, or of different width or kind.
    """
    given = checked_evidence(evidence, "evidence")
    kinds = {kind: checked_evidence(rows, f"synthetic {kind}") for kind, rows in synthetic.items() if len(rows)}
    check_synthetic(given, kinds)
    if not varying(np.concatenate([given, *kinds.values()])).any():
        return nothing_told(len(given), kinds)
    rng = generator(seed, "audit verdict")
    known = Synthetic.of({"random": kinds["random"]}, {"random": 1.0})
    weights = combine(given, known, rng)
    random = estimate_share(given @ weights, known.rows @ weights)
    if held_out is not None and len(held_out.known) >= LEAST_SYNTHETIC:
        random = pooled(random, held_out_share(held_out, rng))
        weights = combine(given, known, rng, share=random.share)
    near = near_share(local, random) if local else None
    share = random.share + (near.counted if near else 0.0)
    part = min(near.counted / share, MOST_NEAR) if near and near.counted else 0.0  # of the mismatched pairs
    expected = expected_near(random, near)
    if near and expected and "near" in kinds:  # for the order of pairs a guess is better than none
        mixed = Synthetic.of(kinds, {"random": 1 - expected, "near": expected})
        learned = combine(given, mixed, rng, share=min(random.share + near.share, 1.0))
        weights = mean_weights(given, weights, learned, expected / 2)
    weights, left = guarded(weights, given, kinds["random"], nearest, near=expected)
    if part and "near" in kinds:
        known = Synthetic.of(kinds, {"random": 1 - part, "near": part})
    p_match = Calibration.of(given @ weights, known.rows @ weights, known.weights, share)(given @ weights)
    low = random.low + (near.low if near else 0.0) if share > NO_SIGN else 0.0  # right but unusual pairs, below it
    high = max(random.high, random.share + near.high if near else 0.0)
    certain = max(random.share - WIDTH * random.error, near.counted if near else 0.0)
    two_groups = share > NO_SIGN and certain > NO_SIGN / 2
    return Verdict(
        p_match=p_match.astype(np.float32),
        flagged=p_match < 0.5,
        noise_rate=float(share),
        noise_rate_low=min(low, share),
        noise_rate_high=min(high, 1.0),
        two_groups=bool(two_groups),
        doubt=None if two_groups else doubt_of(random, near),
        random=Share(random.share, random.low, random.high),
        near=None if near is None else Share(near.share, near.low, near.high),
        details={
            "synthetic_mismatches": {kind: len(rows) for kind, rows in kinds.items()},
            "weights": [round(float(weight), 6) for weight in weights],
            "weights_left": left,
            "low_end": round(random.quantile, 4),
            "near_counted": round(near.counted, 4) if near else None,
            "near_asked": near.pairs if near else 0,
            "posterior_mean": round(float(1 - p_match.mean()), 6),
        },
    )


def expected_near(random: Estimate, near: NearShare | None) -> float:
    """What share of the mismatches is near, as local ranks have it, certain or not; half where they see none at all."""
    seen = near.share if near else 0.0
    total = random.share + seen
    return min(seen / total, MOST_NEAR) if total > NO_SIGN else UNKNOWN


def held_out_share(held_out: HeldOut, rng: np.random.Generator) -> Estimate:
    """π, by evidence of which there are many synthetic mismatches."""
    given, known = (checked_evidence(rows, "held-out evidence") for rows in (held_out.given, held_out.known))
    weights = combine(given, Synthetic.of({"random": known}, {"random": 1.0}), rng)
    return estimate_share(given @ weights, known @ weights)


def nothing_told(pairs: int, kinds: Mapping[str, Array]) -> Verdict:
    """Where all pairs and the synthetic mismatches have the very same evidence: anything may be true."""
    return Verdict(
        p_match=np.full(pairs, 0.5, dtype=np.float32),
        flagged=np.zeros(pairs, dtype=bool),
        noise_rate=0.0,
        noise_rate_low=0.0,
        noise_rate_high=1.0,
        two_groups=False,
        doubt="the evidence is the same for every pair and for those known to be mismatched: nothing can be told by it",
        details={"synthetic_mismatches": {kind: len(rows) for kind, rows in kinds.items()}},
    )


def doubt_of(random: Estimate, near: NearShare | None) -> str:
    doubt = (
        f"at most {100 * random.high:.1f} % of the pairs score like random mismatches, which right but unusual pairs "
        "do as well"
    )
    if near is not None:
        doubt += (
            f". Near mismatches (captions of similar things) may be up to {100 * near.high:.1f} %: they cannot be told "
            "from right pairs that are alike"
        )
    return doubt


def check_synthetic(given: Array, kinds: Mapping[str, Array]) -> None:
    """Refuse synthetic that cannot be measured by.

    Raises:
        InputError: see `verdict_of_evidence`.
    """
    if len(kinds.get("random", ())) < LEAST_SYNTHETIC:
        raise InputError(
            f"{len(kinds.get('random', ()))} pairs known to be mismatched; at least {LEAST_SYNTHETIC} are needed to "
            "measure by. Audit more pairs"
        )
    for kind, rows in kinds.items():
        if kind not in KINDS:
            raise InputError(f"synthetic mismatches are of the kind {kind!r}; expected {' or '.join(KINDS)}")
        if given.shape[1] != rows.shape[1]:
            raise InputError(
                f"evidence has {given.shape[1]} columns, synthetic {kind} {rows.shape[1]}; expected the same"
            )
