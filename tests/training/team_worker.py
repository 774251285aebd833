"""What each of several processes does that `test_team` starts.

They do one thing after the other, each in a folder of its own, and print a line of JSON about each.
"""

import json
import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import truepair
from tests.methods.labelled import labelled_pairs
from tests.training.test_pieces import Running
from truepair.correspondence import class_noise
from truepair.engines import mlp_engine
from truepair.engines.config import MLPConfig
from truepair.errors import TrainingError
from truepair.methods import build_method
from truepair.methods.truepair import first_labels
from truepair.training.loop import Training
from truepair.training.setup import Setup
from truepair.training.team import Team, leave

OPTIONS = {
    "truepair": {"pieces": (3,)},
    "mscn": {"warm_up_epochs": 1, "head_width": 5, "trial": "taken"},
    "gsc": {"co_train": True},
    "uot-rcl": {"warm_up_epochs": 1, "neighbours": 6},
}


@dataclass(frozen=True)
class Encoded:
    vectors: torch.Tensor
    lengths: torch.Tensor


def fit(method, out, **more):
    """The MLP engine without its batch norms, with dropout."""
    mlp_engine.nn.BatchNorm1d = lambda *_, **__: Running()
    setup = Setup(model=MLPConfig(width=8, hidden_width=12))
    options = {"epochs": 3, "batch_size": 20, "piece_size": 6, "learning_rate": 1e-3, "progress": False, **more}
    made, pairs = build_method(method, OPTIONS.get(method)), labelled_pairs(40)
    if made.least_trusted:
        pairs = replace(pairs, trusted=np.arange(40) < 20)
    return truepair.fit(pairs, dev=labelled_pairs(20, seed=1), method=made, out=out, setup=setup, **options)


def train(folder, method):
    fit(method, folder)


LIMITS = {
    "truepair": (
        first_labels,
        {"MOST": -1.0, "SURELY": -1.0, "LEAST_RECALL": 0.0, "BY_CHANCE": 0.0, "LEAST_IMAGES": 40},
    ),
    "uot-rcl": (class_noise, {"LEAST_IMAGES": 40, "MOST_UNCERTAIN": math.inf, "LEAST_NOISE": -1.0}),
}


def fit_held_out(out, method):
    """Linear models are believed, whatever they say of 40 pairs."""
    module, limits = LIMITS[method]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(module, name, value)
        fit(method, out)


def held_out(folder, method):
    fit_held_out(folder, method)


def stopped(folder, method):
    """The second process is asked to stop at the fourth batch; all do. How many batches were done."""
    train_batch, done = Training._train_batch, []

    def stopping(self, *arguments):
        done.append(1)
        if len(done) == 4 and Team.joined().rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return train_batch(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "_train_batch", stopping)
        with pytest.raises(KeyboardInterrupt):
            fit(method, folder)
    return len(done)


def resumed(folder, method):
    """What other processes have stopped."""
    fit(method, folder.with_name(f"stopped-{method}"), resume=True)


def left(folder, method):
    """The threads of the group there are when a training has ended, and when the process has left the group."""
    fit(method, folder)
    during = of_the_group()
    leave()
    return [during > 0, of_the_group()]


def of_the_group():
    return sum("gloo" in name.read_text() for name in Path("/proc/self/task").glob("*/comm"))


def messages(folder, _):
    """What the processes tell each other."""
    team = Team.joined()
    assert (team.size, team.leads) == (3, team.rank == 0)
    assert team.told(lambda: ("said by", team.rank)) == ("said by", 0)
    assert team.any(team.rank == 2) and not team.any(False)

    def piece(number):
        return Encoded(torch.full((number + 1, 2), float(number)), torch.tensor([number])), None

    made = team.exchanged([piece(n) if team.owns(n) else None for n in range(5)], torch.device("cpu"))
    for number, (encoded, nothing) in enumerate(made):
        expected, _ = piece(number)
        assert nothing is None and torch.equal(encoded.vectors, expected.vectors)
        assert torch.equal(encoded.lengths, expected.lengths)

    everywhere, once = (nn.Parameter(torch.zeros(2, dtype=torch.float64)) for _ in range(2))
    never = nn.Parameter(torch.zeros(2))
    everywhere.grad = torch.tensor([1.0, team.rank], dtype=torch.float64)
    if team.rank == 1:
        once.grad = torch.tensor([5.0, 6.0], dtype=torch.float64)
    team.add_gradients([everywhere, once, never])
    assert everywhere.grad.tolist() == [3.0, 3.0] and once.grad.tolist() == [5.0, 6.0] and never.grad is None

    own = {"a": torch.full((2, 3), float(team.rank)).T, "b": torch.tensor(team.rank)}
    team.agree(own)
    assert own["a"].tolist() == [[0.0, 0.0]] * 3 and own["b"].item() == 0
    with team.first_before_the_others():
        assert team.leads or folder.exists()
        folder.touch()
    return "all said"


def gone(folder, _):
    """The second process ends; the first says so."""
    team = Team.joined()
    team.told(lambda: None)
    if team.rank == 1:
        os._exit(3)
    try:
        while True:
            team.any(False)
    except TrainingError as error:
        print(error, flush=True)
        os._exit(0)


def perform(folder, *tasks):
    """Each task is WHAT,METHOD; its folder is WHAT-METHOD in `folder`."""
    for task in tasks:
        what, method = task.split(",")
        print(json.dumps(globals()[what](folder / f"{what}-{method}", method)), flush=True)
