"""Batches of our own method whose similarities are given, and small runs of it."""

import torch

import truepair
from truepair.correspondence import CorrespondenceMemory
from truepair.engines.config import GlobalConfig
from truepair.methods import build_method
from truepair.methods.truepair.teacher import Teachers
from truepair.training.setup import Setup

PAIRS = 6
SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 3, "seed": 5, "batch_size": 16, "minimum_count": 1, "learning_rate": 5e-3}


def similarity_of(seed, size=PAIRS):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(size, size, generator=generator) * 0.4 + 0.3 * torch.eye(size)


class Views:
    def __init__(self, similarity):
        self.similarity = similarity


class GivenForward:
    """A batch whose similarity is given, and the mean of those of two teachers."""

    class Engine:
        learning_factor = 2.0

    def __init__(self, similarity, taught, ids):
        self.similarity, self.taught = similarity, taught
        self.batch = type("Batch", (), {"ids": ids})()
        self.networks = [type("Network", (), {"engine": self.Engine()})()]
        self.auxiliary = Teachers(torch.nn.Identity(), [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])

    def through(self, network):
        share = [1.5, 0.5][[*self.auxiliary.before].index(network)]  # no constant: a softmax would not see it
        return Views(share * self.taught)


def prepared(labels=None, **options):
    method, memory = build_method("truepair", options), CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    if labels is not None:
        memory.write("credit", None, labels)
    return method, memory, method.stages(5, 4)


CREDIT = torch.tensor([0.0, 0.1, 0.7, 1.0, 0.0, 0.3])
IDS = torch.tensor([3, 0, 5, 1, 4, 2])
LAST = 3
"""The last stage, where `pieces` says nothing."""


def fit(tiny, out, method, setup=SMALL, **more):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)
    return truepair.fit(noisy, method=method, dev=truepair.load(tiny, "dev"), out=out, setup=setup, **QUICK | more)
