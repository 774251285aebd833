"""Labels of linear models beside those of a network that memorises mismatched pairs: the sign of it, and the labels."""

import math

import numpy as np
import pytest
import torch

import truepair
from tests.conftest import MANY_WORDS
from tests.methods.own.test_truepair_first_labels import asked
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.correspondence.mixture_proportion import Estimate, auroc_among
from truepair.data.config import Augmentation
from truepair.engines.config import GlobalConfig
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.first_labels import FirstLabels
from truepair.methods.truepair.method import SHARE
from truepair.training.setup import Setup

SETUP = Setup(model=GlobalConfig(width=32, word_width=16), augmentation=Augmentation(word_share=0.0, region_share=0.0))
LONG = {"epochs": 1, "seed": 5, "batch_size": 32, "minimum_count": 1, "learning_rate": 2e-2}
FROZEN = {"pieces": (8,), "freeze_epochs": 6}
"""Trained on all pairs for so long that the first network has memorised many of the mismatched ones."""


@pytest.fixture(scope="module")
def memorable(tmp_path_factory):
    """1,200 pairs of 600 images: three words that match, and one, as most features, that only tells pairs apart."""
    folder = tmp_path_factory.mktemp("memorable") / "memorable"
    folder.mkdir()
    rng = np.random.default_rng(0)
    directions, others = rng.normal(size=(len(MANY_WORDS), 8)), [f"name{number}" for number in range(200)]
    for split, count in (("train", 600), ("dev", 16)):
        features, captions = np.zeros((count, 3, 24), dtype=np.float16), []
        for image in range(count):
            shown = rng.choice(len(MANY_WORDS), 3, replace=False)
            features[image, :, :8] = directions[shown] + 0.1 * rng.normal(size=(3, 8))
            features[image, :, 8:] = rng.normal(size=16)
            captions += [" ".join([*(MANY_WORDS[word] for word in shown), rng.choice(others)]) for _ in range(2)]
        np.save(folder / f"{split}_ims.npy", features)
        (folder / f"{split}_caps.txt").write_text("\n".join(captions) + "\n", encoding="utf-8")
    return folder


def fit(folder, out, **more):
    pairs = truepair.inject_noise(truepair.load(folder), 0.4, seed=1)
    method = build_method("truepair", FROZEN | more.pop("options", {}))
    return truepair.fit(pairs, method=method, dev=truepair.load(folder, "dev"), out=out, setup=SETUP, **LONG | more)


def test_a_network_that_memorises_is_helped_and_a_cut_off_run_as_well(memorable, tmp_path):
    whole = fit(memorable, tmp_path / "whole")
    first, refined = whole.metrics[0], whole.metrics[6]
    bound = 1 - first["first_share_low"] / 2
    assert refined["network_auroc"] > bound, "more than can be told"
    assert "network_auroc" not in whole.metrics[7], "asked no more"
    assert refined["disbelieved"] == pytest.approx(first["first_share"], abs=0.01)
    alone = fit(memorable, tmp_path / "alone", options={"first_labels": "given"})
    assert refined["detection"]["auroc"] > alone.metrics[6]["detection"]["auroc"]
    cut = tmp_path / "cut"
    for batches, resume in ((200, False), (50, True)):  # of 38 an epoch: before and after labels are first refined
        with pytest.MonkeyPatch.context() as patch, stopped_after(patch, batches, saved=True):
            fit(memorable, cut, resume=resume)
    assert_same_run(fit(memorable, cut, resume=True).path, whole.path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("apart", [0.0, 1.0, 8.0])
def test_what_can_be_told_without_memorising(share, apart):
    """Mismatched pairs are like synthetic mismatches then: AUROC π/2 + (1 − π) A, which is 1 − π/2 at most."""
    rng = np.random.default_rng(3)
    wrong = rng.random(20_000) < share
    given = rng.normal(size=20_000) + apart * ~wrong
    auroc = auroc_among(given, rng.normal(size=20_000))
    normal = (1 + math.erf(apart / 2)) / 2
    assert auroc == pytest.approx(share / 2 + (1 - share) * normal, abs=0.01) and auroc < 1 - share / 2 + 0.01
    memorised = auroc_among(given + apart * wrong / 2, rng.normal(size=20_000))
    assert not (apart and share > 0.2) or memorised > auroc + 0.02


@pytest.mark.parametrize("seed", range(6))
def test_the_decision_and_the_labels_are_those_of_plain_loops(seed):
    """Section 4 of the method's page in float64: the AUROC pair by pair, the bound, and the mean of log odds."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0.0, 0.6)
    estimate = Estimate(low + 0.1, low, low + 0.2, 0.01, 0.5)
    linear, judged = rng.normal(-3, 3, 1000), rng.random(1000) < 0.9
    found = FirstLabels(
        estimate,
        torch.tensor(linear, dtype=torch.float32),
        torch.full((1000,), -9.0),
        torch.zeros(1000),  # too little is told to replace the labels of a slow network
        torch.from_numpy(judged),
        1.0,
    )
    method, memory = asked(found)
    mean, made, taken = [0.0] * 1000, [0.0] * 1000, None
    stages = method.stages(10, 8)
    refined = stages[0].epochs - method.config.freeze_epochs
    for epoch in range(3, 6):
        seen = 1 / (1 + np.exp(-rng.normal(-4 + (epoch - 3) * 1.2, 2, 1000)))
        synthetic = 1 / (1 + np.exp(-rng.normal(-5, 2, 1000)))
        memory.write("seen_probability", None, torch.tensor(seen, dtype=torch.float32))
        memory.write("synthetic", None, torch.tensor(synthetic, dtype=torch.float32))
        method.start_epoch(EpochPosition(0, epoch, stages), memory)
        count = epoch - 2 + (0 if taken is None else refined)
        for pair in range(1000):
            mean[pair] += (math.log(seen[pair] / (1 - seen[pair])) - mean[pair]) / count
            made[pair] += (math.log(synthetic[pair] / (1 - synthetic[pair])) - made[pair]) / count
        if taken is None:
            rows = [pair for pair in range(1000) if judged[pair]]
            wins = sum((mean[a] > made[b]) + (mean[a] == made[b]) / 2 for a in rows for b in rows)
            if wins / len(rows) ** 2 > 1 - low / 2:
                taken = epoch
                mean = [(refined * linear[pair] + count * mean[pair]) / (refined + count) for pair in range(1000)]
        assert memory.has_noted(SHARE) is (taken is not None)
        np.testing.assert_allclose(memory.read("odds").numpy(), mean, rtol=1e-4, atol=1e-4)
        if taken is not None:
            uppermost = set()
            for rows in ([pair for pair in range(1000) if judged[pair] == one] for one in (True, False)):
                uppermost |= set(sorted(rows, key=lambda pair: mean[pair])[-round((1 - estimate.share) * len(rows)) :])
            assert set(memory.read("credit").nonzero()[:, 0].tolist()) == uppermost
