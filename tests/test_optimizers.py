"""Optimizers take torch's steps, number by number, and no training imports torch's compiler."""

import subprocess
import sys
from copy import deepcopy

import pytest
import torch

from truepair import optimizers
from truepair.optimizers import all_at_once
from truepair.training.config import TrainingConfig, build_optimizer

KINDS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def network():
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()


def parameters(model, split):
    own = list(model.parameters())
    return [{"params": own[:split]}, {"params": own[split:], "lr": 0.03}]


@pytest.mark.parametrize("name", KINDS)
def test_steps_are_those_of_torch(name):
    torch.manual_seed(3)
    ours, theirs = network(), network()
    theirs.load_state_dict(ours.state_dict())
    own = getattr(optimizers, KINDS[name].__name__)
    first, second = (
        kind(parameters(model, 2), lr=0.1, weight_decay=0.01) for kind, model in ((own, ours), (KINDS[name], theirs))
    )
    for step in range(6):
        batch = torch.randn(7, 5, dtype=torch.float64)
        for model, optimizer in ((ours, first), (theirs, second)):
            optimizer.zero_grad()
            assert all(values.grad is None for values in model.parameters())
            model(batch).square().sum().backward()
            optimizer.step()
        for values, others in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(values, others) and values.requires_grad and values.grad_fn is None
        if step == 2:  # a checkpoint of one goes on in the other
            first.load_state_dict(deepcopy(second.state_dict()))
    assert str(first.state_dict()) == str(second.state_dict())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KINDS)
def test_parameters_stepped_all_at_once_take_the_same_steps(name, dtype):
    """Also where some have no gradient, one of no dimension, and after a checkpoint of the other way."""
    torch.manual_seed(4)
    start = [torch.randn(size, dtype=dtype) for size in ((), (3,), (40, 7), (5, 2, 3), (4,))]
    ours, theirs = ([torch.nn.Parameter(values.clone()) for values in start] for _ in range(2))
    kind = getattr(optimizers, KINDS[name].__name__)

    def made(own, foreach):
        return kind([{"params": own[:2]}, {"params": own[2:], "lr": 0.03}], lr=0.1, weight_decay=0.1, foreach=foreach)

    assert all_at_once(ours) is True
    first, second = made(ours, all_at_once(ours)), made(theirs, False)
    for step in range(200):
        for values, others in zip(ours, theirs, strict=True):
            values.grad = None if step % 3 == values.dim() else 10.0 ** (step % 30 - 20) * torch.randn_like(values)
            others.grad = None if values.grad is None else values.grad.clone()
        first.step()
        second.step()
        assert all(torch.equal(values, others) for values, others in zip(ours, theirs, strict=True)), step
        if step == 100:
            kept = deepcopy(second.state_dict())
            for group in kept["param_groups"]:
                group["foreach"] = True
            first.load_state_dict(kept)


def test_many_parameters_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(optimizers, "MOST_AT_ONCE", 33)
    assert all_at_once(network().parameters()) is None
    monkeypatch.setattr(optimizers, "MOST_AT_ONCE", 34)
    assert all_at_once(network().parameters()) is True


@pytest.mark.parametrize("name", KINDS)
def test_what_is_built_is_torchs_kind(name):
    built = build_optimizer(TrainingConfig(optimizer=name), [(list(network().parameters()), 0.5)], 0.1)
    assert isinstance(built, KINDS[name]) and built.param_groups[0]["lr"] == 0.1
    assert built.param_groups[0]["foreach"] is True


TRAINS = """
import sys
from copy import deepcopy
from pathlib import Path
import numpy as np
from truepair.cli.main import main
from truepair.evaluation import mine
options = ["--quiet", "--threads", "1", "--epochs", "2", "--width", "16", "--minimum-count", "1"]
for method in ("truepair", "gsc"):
    out = Path(sys.argv[2]) / method
    assert main(["train", sys.argv[1], "--method", method, "--out", str(out), *options]) == 0
    assert main(["evaluate", str(out), sys.argv[1]]) == 0
mine(np.arange(64.0), np.arange(64.0), steps=2)
print([name for name in sys.modules if name.startswith("torch._dynamo")])
"""


def test_training_imports_no_compiler(tiny, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", TRAINS, str(tiny), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"
