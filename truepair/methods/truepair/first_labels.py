"""Labels of linear models that have not seen the pair: before the first epoch where most pairs are mismatched.

A network that is trained on pairs most of which are wrong learns many of them by heart before its labels can tell.
Cross-fitted CCA of what it is fed (`truepair.correspondence.canonical`) tells them in seconds, and how many there are.
With less noise it is left to the networks' own labels at first. Where a network has learned next to nothing by the time
that labels are refined, or has memorised mismatched pairs after all, the linear models' labels count beside its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.canonical import FOLDS, CrossFittedCCA, HeldOutScores
from truepair.correspondence.division import CERTAIN, HALF
from truepair.correspondence.mixture_proportion import Estimate, auroc_among, estimate_share
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.methods.input_vectors import InputVectors

MOST = 2 / 3
"""Share of mismatched pairs by the estimate, above which the first labels are those of linear models. At 60 % noise an
earlier form gained ten points of rSum on products and lost six on photographs (seed 0), at 40 % nothing changed: a
wrong decision costs little near to the threshold, and up to 40 points far above it."""
SURELY = 0.5
"""Where the interval of the estimate has to begin, so that an estimate of which nothing is certain decides nothing. Had
all of it to lie above `MOST`, 3,000 products at 80 % would be left alone in one seed of three: estimated at 74 %, from
60 % on."""
LEAST_RECALL = 0.6
"""Of the pairs that match, as many as there are by the share, those probable enough to be believed; where they are
fewer a linear model tells too little of what the network is fed. At 80 % noise, three seeds: drawings 0.16 to
0.22, photographs 0.69 to 0.74, 3,000 products 0.67 to 0.77. Of 3,000 drawings at 60 % (two seeds) first labels of 0.43
and 0.50 cost 36 and 29 points of dev rSum, and 0.5 was asked for until revision 8."""
DIVISIONS = 5
"""Into folds, over which π is estimated and labels are averaged. With one, π depends on the division: of
photographs at 80 % (seed 2), ten of them give a π of 0.73 to 0.80, whose interval begins at 0.57 to 0.76; two times
five of them 0.81, and 0.75, both."""
AVERAGED = 200_000
"""Pairs times divisions, up to which labels are means over several divisions: of more pairs the mean tells little more
than one, and each takes minutes for a million of them. AUROC at 80 % noise by one division and by five: 5,873 emoji
0.865, 0.877, 12,000 products 0.975, 0.978, 30,000 photographs 0.938, 0.942."""
WIDEST = 1 / 3
"""Width of the interval of the estimate up to which the labels may count later (`narrow`): the most pairs that are
believed or not by its error. 3,000 products at 40 % have 0.13, of 1,000 products and photographs 0.26 to 0.64."""
BY_CHANCE = 0.01  # of all pairs: fewer may be believed by chance
ERRORS = 2.0
"""Standard errors by which given pairs have to score above synthetic mismatches, or linear models tell nothing of them.
Without that, where a linear model sees nothing, every pair looks mismatched: of 20 or 200 classes of captions, and of
features whose sign alone is random, π was said to be 1, with an interval from 0.8 on."""
LEAST_IMAGES = 40 * FOLDS
FREQUENT = 0.01
"""Share of the pairs up to which a caption may be repeated, or `SEVERAL` times. Among 1,024 it is there ten times then,
and its best score is log 100. With half of 2,000 right pairs below one caption, π was said to be 0.13 (up to 0.32),
with a fifth 0.02."""
SEVERAL = 10


@dataclass(frozen=True)
class FirstLabels:
    """What held-out scores say of all pairs.

    Attributes:
        estimate: of π, the share of mismatched pairs.
        odds: (N,) float32 log odds that a pair is found in a batch, as p̂ has them: the mean over divisions into folds.
        synthetic: (N,) float32 the same of synthetic mismatches by one division, their median where there are fewer.
        matching: (N,) float32 p_match, calibrated by synthetic mismatches: the mean over divisions.
        judges: (N,) bool, which pairs were judged; the others have a caption of too many images, odds that a share π of
            the judged ones is below, and p_match 0.
        auroc: of the judged pairs against synthetic mismatches: ½ where nothing is told.
        copies: how often each pair stands there.
    """

    estimate: Estimate
    odds: Tensor
    synthetic: Tensor
    matching: Tensor
    judges: Tensor
    auroc: float
    copies: float = 1.0

    @property
    def judged(self) -> int:
        """How many pairs were judged."""
        return int(self.judges.sum())

    @property
    def recall(self) -> float:
        """Expected share of the matching pairs, as many as there are by π, that are probable enough to be believed."""
        return min(1.0, self.believed / max((1 - self.estimate.share) * self.judged, 1.0))

    @property
    def believed(self) -> float:
        """How many matching pairs there are among those that are probable enough to be believed."""
        return float(self.matching[self.matching >= HALF].sum())

    @property
    def better(self) -> bool:
        """Whether the first labels are these rather than those given."""
        return mostly_mismatched(self.estimate) and self.separates

    @property
    def narrow(self) -> bool:
        """Whether π is known well enough that the labels may count later."""
        return self.estimate.high - self.estimate.low <= WIDEST

    @property
    def separates(self) -> bool:
        """Whether enough of the pairs that match can be told."""
        return self.recall >= LEAST_RECALL and self.believed >= BY_CHANCE * self.judged

    @property
    def tells(self) -> bool:
        """Whether the scores tell given pairs from synthetic mismatches at all."""
        error = math.sqrt(self.copies / (6 * self.judged))  # of the AUROC of two samples that are alike
        return self.auroc - HALF > ERRORS * error


def mostly_mismatched(estimate: Estimate) -> bool:
    """Whether so many pairs are mismatched that a network would learn too many of them before its labels can tell."""
    return estimate.share > MOST and estimate.low > SURELY


class PairVectors(InputVectors):
    """What the items of all pairs are before anything is learned of them, and what that says of the pairs."""

    def first_labels(self, *, temperature: float, batch_size: int) -> FirstLabels | None:
        """What cross-fitted CCA says of the pairs; None where there is too little to tell.

        Args:
            temperature: τ of the matching probability.
            batch_size: pairs among which a pair is to be found, for its odds.
        """
        judged, copies, models = self.held_out_models(temperature)
        if models is None:
            return None
        divisions = models.divided(DIVISIONS)
        first = HeldOutScores.together([each.first for each in divisions])
        estimate = estimate_share(first.given, first.synthetic, times=DIVISIONS * copies)
        averaged = max(1, AVERAGED // int(judged.sum()))
        cleaned = [each.cleaned(estimate.share) for each in divisions[:averaged]]
        mean = np.mean([each.given for each in cleaned], axis=0)
        made = cleaned[0].synthetic
        matching = np.zeros(len(judged))
        given = np.full(len(judged), np.quantile(mean, estimate.share))
        synthetic = np.full(len(judged), np.median(made))
        matching[judged] = np.mean([each.matching(estimate.share) for each in cleaned], axis=0)
        given[judged] = mean
        synthetic[: len(made)] = made
        together, among = HeldOutScores.together(cleaned), np.log(batch_size)
        odds, of_synthetic, match = (_float(part) for part in (given - among, synthetic - among, matching))
        auroc = auroc_among(together.given, together.synthetic)
        return FirstLabels(estimate, odds, of_synthetic, match, torch.from_numpy(judged), auroc, copies)

    def held_out_models(self, temperature: float) -> tuple[BoolArray, float, CrossFittedCCA | None]:
        """(N,) which pairs can be judged, how often each of them stands there, and the models of these if possible."""
        captions = self.captions()
        groups = self.groups(captions)
        judged = judged_by_captions(captions, groups)
        copies = self.copies(groups, judged)
        images, texts = (side if judged.all() else side[judged] for side in self.sides)
        groups = groups[judged]
        if len(np.unique(groups)) < LEAST_IMAGES or not all(np.ptp(side, axis=0).any() for side in (images, texts)):
            return judged, copies, None
        return judged, copies, CrossFittedCCA(images, texts, groups, temperature=temperature, seed=0)


def share_by_network(memory: CorrespondenceMemory, judged: Tensor) -> Estimate:
    """π by the probabilities of the judged pairs, and of synthetic mismatches, as a network has last seen them.

    The other pairs share their captions, and with these the probability: they all look mismatched.
    """
    seen, synthetic = (
        torch.logit(memory.read(name)[judged].double(), eps=CERTAIN).numpy()
        for name in ("seen_probability", "synthetic")
    )
    return estimate_share(seen, synthetic)


def judged_by_captions(captions: IntArray, groups: IntArray) -> BoolArray:
    """(N,) whether the caption of a pair can tell whether it is mismatched: it is of few images.

    All can where hardly any would be left: captions that are names of classes.
    """
    judged: BoolArray = np.bincount(captions)[captions] <= max(FREQUENT * len(captions), SEVERAL)
    return judged if len(np.unique(groups[judged])) >= LEAST_IMAGES else np.ones_like(judged)


def _float(values: Array) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
