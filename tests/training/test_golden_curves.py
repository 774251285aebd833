"""A seeded training curve of every method. A change that is not meant to change numbers must leave these alone.

The tolerance covers different processors (another order of additions), not different mathematics: one more step,
another margin or another temperature moves every value by far more.
Remake with `python tests/training/test_golden_curves.py`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import truepair
from truepair.models.config import GlobalConfig
from truepair.training.setup import Setup

GOLDEN = {
    "triplet": {"losses": [9.50025, 9.34286, 0.56216, 0.52919], "auroc": 0.561},
    "infonce": {"losses": [4.36182, 3.99796, 3.73233, 3.52404], "auroc": 0.518},
    "crcl": {"losses": [18.60561, 17.70056, 9.60793, 9.56319, 9.63407, 9.61275, 9.56262, 9.59049], "auroc": 0.576},
}


def curve(method, options, folder):
    """Loss and dev rSum of every epoch, and the mean of the final beliefs."""
    noisy = truepair.inject_noise(truepair.load(folder), 0.4, seed=3)
    with TemporaryDirectory() as out:
        run = truepair.fit(
            noisy,
            method=truepair.build_method(method, options),
            dev=truepair.load(folder, "dev"),
            out=Path(out) / "run",
            setup=Setup(model=GlobalConfig(width=16, word_width=8)),
            epochs=4,
            seed=7,
            batch_size=24,
            minimum_count=1,
            learning_rate=5e-3,
        )
        return {
            "losses": [round(line["loss"], 5) for line in run.metrics],
            "auroc": round(run.result["detection"]["auroc"], 3),
        }


CASES = {"triplet": {"warm_up_epochs": 2}, "infonce": {}, "crcl": {"pieces": (4,)}}


@pytest.mark.parametrize("method", CASES)
def test_training_curve(method, tiny):
    found = curve(method, CASES[method], tiny)
    assert found["losses"] == pytest.approx(GOLDEN[method]["losses"], rel=2e-3)
    assert found["auroc"] == pytest.approx(GOLDEN[method]["auroc"], abs=0.02)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import write_tiny_precomp

    torch.set_num_threads(1)
    with TemporaryDirectory() as place:
        tiny_folder = write_tiny_precomp(Path(place) / "tiny")
        for name, given in CASES.items():
            print(f'    "{name}": {curve(name, given, tiny_folder)},')
