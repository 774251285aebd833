"""What decisions of people are worth: `python -m truepair.reproduce.reviews SEED ROOT RUNS`.

1,000 photographs of `flickr8k`, 20 % of whose 5,000 captions are those of the most similar other photograph, are
audited by cross-fitting. A simulated reviewer with 5 % mistakes decides pairs in the order `gain`; after each number of
decisions the estimate is made, and the pairs that are still undecided are ranked by what the audit believes then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from truepair.device import set_threads
from truepair.reproduce.cells import Cell, Context, Places, Record
from truepair.reproduce.processes import truepair

COUNTS = (0, 20, 50, 100, 200, 500)
RATE, MISTAKES = 0.2, 0.05


def review_cells(at: Context, *, seeds: Sequence[int] = (0, 1, 2)) -> Iterator[Cell]:
    """A cell a seed: of the noise, the audit, the draws and the reviewer."""
    for seed in seeds:
        name = f"photographs-near{round(100 * RATE)}-seed{seed}"
        facts = {"data": "photographs", "kind": "near", "noise": RATE, "seed": seed}
        command = f"python -m truepair.reproduce run {at.table} --seeds {seed}"
        yield Cell(name, facts, command, partial(measure_reviews, f"{at.table}/{name}", seed))


def measure_reviews(folder: str, seed: int, places: Places) -> Record:
    words = [str(seed), str(places.data), str(places.runs / folder)]
    return {"threads": 1, **json.loads(truepair(*words, module="truepair.reproduce.reviews").splitlines()[-1])}


def review_rows(seed: int, root: Path, runs: Path) -> dict[str, Any]:
    """One audit, and what it comes to after each number of decisions."""

    from truepair.audit.options import AuditOptions, CrossFitting
    from truepair.audit.people import with_decisions
    from truepair.audit.scoring.cross_fitting import cross_fit
    from truepair.audit.verdict.verdict import verdict_of_scored
    from truepair.data.collection import PairsCollection
    from truepair.data.noise import inject_noise
    from truepair.decisions.order import ReviewOrder
    from truepair.decisions.population import Population
    from truepair.decisions.simulated import SimulatedReviewer
    from truepair.decisions.sources import Decided
    from truepair.evaluation.detection import detection
    from truepair.reproduce.audit_rows import load_labelled

    set_threads(1)
    pairs = inject_noise(load_labelled("photographs", root), RATE, kind="nearest", seed=seed)
    mismatched, given = pairs.mismatched, pairs.without_truth()
    assert mismatched is not None
    scored = cross_fit(given, CrossFitting(), runs / "crossfit", bank=AuditOptions().bank, seed=seed)
    verdict, collection = verdict_of_scored(scored, seed=seed), PairsCollection(given)
    order = ReviewOrder(Population(given.ids(), verdict.p_match.astype(float)), seed=seed)
    decisions = SimulatedReviewer(mismatched, mistakes=MISTAKES, seed=seed).review(order, max(COUNTS))
    rows = []
    for count in COUNTS:
        after, people = with_decisions(verdict, scored, collection, Decided(runs, decisions[:count], {}))
        left = [place for place in range(len(given)) if place not in people.decisions]
        ranked = [detection(each.p_match[left], mismatched[left]) for each in (verdict, after)]
        rows.append(
            {
                "decisions": count,
                "estimate": [after.noise_rate, after.noise_rate_low, after.noise_rate_high],
                "by_people": [people.noise.share, people.noise.low, people.noise.high],
                "taken_over": people.taken_over,
                **{name: [found[name] for found in ranked] for name in ("auroc", "average_precision")},
            }
        )
    return {"pairs": len(given), "mismatch_rate": pairs.mismatch_rate, "reviews": rows}


if __name__ == "__main__":
    print(json.dumps(review_rows(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])), allow_nan=False))
