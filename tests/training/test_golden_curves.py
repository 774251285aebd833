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
from truepair.models.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.training.setup import Setup

GOLDEN = {
    "triplet": {"losses": [9.50025, 9.34286, 0.56216, 0.52919], "auroc": 0.561},
    "infonce": {"losses": [4.36182, 3.99796, 3.73233, 3.52404], "auroc": 0.518},
    "crcl": {"losses": [18.60561, 17.70056, 9.60793, 9.56319, 9.63407, 9.61275, 9.56262, 9.59049], "auroc": 0.576},
    "gsc": {"losses": [3.88724, 1.21875, 0.46434, 0.23901], "auroc": 0.55},
    "gsc dual": {"losses": [7.76535, 2.34311, 0.90175, 0.47934], "auroc": 0.598},
    "ugncl": {"losses": [2.35666, 2.39937, 1.5178, 1.85831], "auroc": 0.57},
    "infonce on sgr": {"losses": [3.18303, 3.17786, 3.17584, 3.17381], "auroc": 0.54},
    "gsc on saf": {"losses": [3.5602, 1.08182, 0.41311, 0.21919], "auroc": 0.45},
    "ugncl on sgr": {"losses": [2.30726, 2.31449, 1.94738, 2.026], "auroc": 0.51},
}


def curve(method, options, folder, model=None):
    """Loss of every epoch, and how well the final beliefs find the mismatched pairs."""
    noisy = truepair.inject_noise(truepair.load(folder), 0.4, seed=3)
    with TemporaryDirectory() as out:
        run = truepair.fit(
            noisy,
            method=truepair.build_method(method, options),
            dev=truepair.load(folder, "dev"),
            out=Path(out) / "run",
            setup=Setup(model=model or GlobalConfig(width=16, word_width=8)),
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


LOCAL = {"width": 16, "word_width": 8, "similarity_width": 8, "dropout": 0.0}

CASES = {
    "triplet": ("triplet", {"warm_up_epochs": 2}),
    "infonce": ("infonce", {}),
    "crcl": ("crcl", {"pieces": (4,)}),
    "gsc": ("gsc", {}),
    "gsc dual": ("gsc", {"co_train": True}),
    "ugncl": ("ugncl", {"warm_up_epochs": 2, "least_clean": 0.0}),
    "infonce on sgr": ("infonce", {}, SGRConfig(**LOCAL)),
    "gsc on saf": ("gsc", {}, SAFConfig(**LOCAL)),
    "ugncl on sgr": ("ugncl", {"warm_up_epochs": 2, "least_clean": 0.0}, SGRConfig(**LOCAL)),
}


@pytest.mark.parametrize("case", CASES)
def test_training_curve(case, tiny):
    method, options, *model = CASES[case]
    found = curve(method, options, tiny, *model)
    assert found["losses"] == pytest.approx(GOLDEN[case]["losses"], rel=2e-3)
    assert found["auroc"] == pytest.approx(GOLDEN[case]["auroc"], abs=0.02)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import write_tiny_precomp

    torch.set_num_threads(1)
    with TemporaryDirectory() as place:
        tiny_folder = write_tiny_precomp(Path(place) / "tiny")
        for name, (method_name, given, *engine) in CASES.items():
            print(f'    "{name}": {curve(method_name, given, tiny_folder, *engine)},')
