"""When an audit is not to be believed without a second look, and what to do about it: said in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truepair.audit.scoring.local_ranks import LEAST_PAIRS
from truepair.correspondence.mixture_proportion import LEAST_SYNTHETIC
from truepair.phrases import counted, percent

if TYPE_CHECKING:
    from truepair.audit.result import AuditResult

NEARLY_ALL = 0.8
WIDE = 0.2
FEW_KNOWN = 100
LEAST_NEAR = 0.01
MOST_SYNTHETIC = 0.1
WEAK = 0.1
"""Share of all others that fit better than a pair that is not flagged, in the middle. Seen: 0.16 on bags of visual
words and topics (`wikipedia`), 0.001 to 0.04 on all other data, noise or not."""
UNUSABLE = 0.05
ALIKE = 0.01
ONE_GROUP = (
    "Here the scores show one group, which they also do where few, most or all pairs are mismatched: that none is "
    "flagged says nothing."
)

BETTER = {
    "cross-fitting": "train longer (--epochs), or give features or embeddings of a pretrained network",
    "run": "use a run that retrieves better, or leave out --run",
    "encoder": "use a stronger encoder, or train one on data like this",
    "embeddings": "use embeddings of a stronger model, or one trained on data like this",
}
"""What makes the scores themselves better, by the way they were made."""


def warnings_of(result: AuditResult) -> list[str]:
    """What to know before the estimate or single probabilities are believed, a sentence or three each, the gravest
    first; empty where nothing speaks against them.
    """
    if not len(result):
        return []
    by_people = result.people is not None and result.people.taken_over  # then the scores do not make the estimate
    said = ["" if by_people else of_estimate(result), "" if by_people else of_precision(result)]
    said += [unusable(result), repeated(result)]
    return [sentence for sentence in said if sentence]


def of_estimate(result: AuditResult) -> str:
    """What may be wrong with the estimate."""
    verdict, details, better = result.verdict, result.verdict.details, BETTER[result.scored_by]
    if verdict.noise_rate > NEARLY_ALL:
        return (
            f"An estimate above {percent(NEARLY_ALL)} looks the same where nearly all pairs are mismatched and where "
            "the scores cannot tell what belongs together. Look at the worst pairs: if many are right, do not believe "
            f"it, and {better}."
        )
    trusted, rank, bank = ~verdict.flagged, result.indicators.get("rank"), details.get("bank", 0)
    if verdict.two_groups and trusted.any() and rank is not None and bank:
        before = float((np.power(bank + 1, 1 - np.nanmedian(rank[trusted])) - 1) / bank)
        if before > WEAK:
            return (
                f"Even of the pairs that are not flagged every second one fits worse than {percent(before)} of all "
                "others do. The scores tell too little here: right pairs that cannot be read count as mismatched, and "
                "the estimate is rather an upper bound. Look at the worst pairs: if many are right, drop none, and "
                f"{better}."
            )
    near = details.get("near_counted") or 0.0
    if verdict.near is not None and near >= LEAST_NEAR:
        return (
            f"The estimate counts near mismatches, captions of similar things, as {percent(near)} of the pairs. Right "
            "pairs that are loosely described can score the same. Without near mismatches the estimate would be "
            f"{percent(verdict.noise_rate - near)}. Look at the worst and the borderline pairs: if many are right, "
            "believe the lower figure and do not drop what is flagged."
        )
    if verdict.near is None and "synthetic_mismatches" in details:
        return (
            "Captions of similar things (near mismatches) were not asked for, and the estimate counts random ones "
            f"only: it takes {LEAST_PAIRS:,} pairs that one model did not train on, and vectors of them."
        )
    return ""


def of_precision(result: AuditResult) -> str:
    """How rough the estimate and the probabilities are."""
    verdict, details = result.verdict, result.verdict.details
    trained_on = int(details.get("trained_on", 0))
    known = int((details.get("synthetic_mismatches") or {}).get("random", 0))
    if trained_on:
        whose = "these very pairs" if trained_on == len(result) else f"{trained_on:,} of these pairs"
        said = (
            f"The run was trained on {whose}, which no synthetic mismatches can be measured beside. Their order does "
            "not need them, but their share and their probabilities come from a mixture of two groups and are less "
            "reliable. For calibrated ones, leave out --run."
        )
        if details.get("known_by_content") is False:
            said += " A version of truepair before digests of images wrote the run: they were told by name and caption."
        return said if verdict.two_groups else f"{said} {ONE_GROUP}"
    if "resampled_with_two_groups" in details:
        said = (
            f"Fewer than {LEAST_SYNTHETIC} pairs could be mismatched on purpose to measure by: there are too few, or "
            "too many with the same caption. The share and the probabilities come from a mixture of two groups and "
            "are not to be relied on. Audit more pairs at once."
        )
        return said if verdict.two_groups else f"{said} {ONE_GROUP}"
    if 0 < known < FEW_KNOWN:
        return (
            f"There were only {counted(known, 'pair')} mismatched on purpose to measure by, so the estimate and the "
            "probabilities are rough. Audit more pairs at once for finer ones."
        )
    low, high = verdict.noise_rate_low, verdict.noise_rate_high
    if verdict.random is not None:  # that of near ones is wide nearly always
        low, high = verdict.random.low, verdict.random.high
    points, narrower = 100 * (high - low), BETTER[result.scored_by]
    if result.scored_by == "cross-fitting" and known <= MOST_SYNTHETIC / 2 * len(result):  # without harm to training
        narrower = f"mismatch more pairs on purpose to measure by (--synthetic-share {MOST_SYNTHETIC}), or {narrower}"
    if points > 100 * WIDE:
        return (
            f"The 95 % interval is {points:.0f} points wide: take the estimate as a rough figure. For a narrower one, "
            f"{narrower}."
        )
    return ""


def unusable(result: AuditResult) -> str:
    lost = len({(problem.file, problem.row, problem.entry) for problem in result.problems if not problem.used})
    share = lost / (lost + len(result))
    if share <= UNUSABLE:
        return ""
    return (
        f"{counted(lost, 'entry' if lost == 1 else 'entrie')} ({percent(share)}) could not be used, and the estimate "
        "says nothing of them. problems.parquet has the reason of each and what would help."
    )


def repeated(result: AuditResult) -> str:
    """Few captions for many images: the chance that two pairs have the same one, from the groups of duplicates."""
    sizes = [len(group.rows) for group in result.duplicates if group.kind == "same-caption"]
    chance = sum(size**2 for size in sizes) / len(result) ** 2
    if chance <= ALIKE:
        return ""
    return (
        f"Captions repeat so much that two pairs drawn at random have the same one in 1 of {round(1 / chance)} cases. "
        "Images of the same caption cannot be told apart by it: 'matching', 'rank' and better captions mean less "
        "here. Captions that say more of each image would help; if these are names of classes, train a method of class "
        "labels instead (truepair train --method uot-rcl)."
    )
