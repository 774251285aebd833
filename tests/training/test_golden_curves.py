"""A seeded training curve of every method. A change that is not meant to change numbers must leave these alone.

The tolerance covers different processors (another order of additions), not different mathematics: one more step,
another margin or another temperature moves every value by far more.
Remake with `python -m tests.training.test_golden_curves`.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import truepair
from tests.training import test_label_runs
from truepair.data.known_pairs import with_known_pairs
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.methods import METHODS
from truepair.training.setup import Setup

GOLDEN = {
    "triplet": {"losses": [9.50025, 9.34286, 0.56216, 0.52919], "auroc": 0.561},
    "infonce": {"losses": [4.36182, 3.99796, 3.73233, 3.52404], "auroc": 0.518},
    "crcl": {"losses": [18.60561, 17.70056, 9.60793, 9.56319, 9.63407, 9.61275, 9.56262, 9.59049], "auroc": 0.576},
    "truepair": {
        "losses": [18.60561, 17.70056, 9.60793, 9.64489, 9.62186, 9.54508, 12.8009, 10.74135, 10.64393, 10.42827],
        "auroc": 0.576,
    },
    "truepair, one teacher": {
        "losses": [18.60561, 17.70056, 9.60793, 9.56319, 11.73787, 10.50654, 10.7056, 10.70682],
        "auroc": 0.629,
    },
    "gsc": {"losses": [3.88724, 1.21875, 0.46434, 0.23901], "auroc": 0.55},
    "gsc dual": {"losses": [7.76535, 2.34311, 0.90175, 0.47934], "auroc": 0.598},
    "ugncl": {"losses": [2.35666, 2.39937, 1.23405, 1.50183], "auroc": 0.585},
    "disncl": {"losses": [0.4163, 0.38237, 0.31759, 0.32498, 0.35717, 0.31132, 0.57665, 0.47906], "auroc": 0.687},
    "disncl on sgr": {"losses": [0.39993, 0.28316, 0.40032, 0.39583], "auroc": 0.53},
    "rince": {"losses": [-0.02222, -0.03163, -0.04105, -0.04938], "auroc": 0.494},
    "rcl": {"losses": [2.26508, 2.09441, 2.02954, 2.02034], "auroc": 0.449},
    "decl": {"losses": [10.45594, 11.3967, 0.9312, 0.77982], "auroc": 0.51},
    "ncr": {"losses": [0.83074, 0.79656, 0.58575, 0.65397], "auroc": 0.712},
    "bicro": {"losses": [0.15294, 0.14314, 1.26863, 1.06644], "auroc": 0.517},
    "bicro on saf": {"losses": [0.08091, 0.07405, 0.12129, 0.39529], "auroc": 0.425},
    "l2rm": {"losses": [19.81451, 19.41611, 0.54612, 0.53481], "auroc": 0.583},
    "osa": {"losses": [4.36182, 3.99796, 0.36973, 0.38011], "auroc": 0.475},
    "in2r": {"losses": [44.28433, 41.63442, 1.90794, 1.95604], "auroc": 0.638},
    "mscn": {"losses": [0.81883, 0.80368, 3.04287, 3.21677], "auroc": 0.468},
    "npc": {"losses": [4.36182, 3.99796, 9.89651, 9.51896], "auroc": 0.508},
    "rcsl": {"losses": [0.41304, 0.38434, 2.0752, 1.77993], "auroc": 0.464},
    "infonce on sgr": {"losses": [3.18303, 3.17786, 3.17584, 3.17381], "auroc": 0.54},
    "gsc on saf": {"losses": [3.5602, 1.08182, 0.41311, 0.21919], "auroc": 0.45},
    "ugncl on sgr": {"losses": [2.30726, 2.31449, 1.59649, 1.627], "auroc": 0.485},
}


def curve(folder, method, options, model=None, **settings):
    """Loss of every epoch, and how well the final beliefs find the mismatched pairs."""
    noisy = truepair.inject_noise(truepair.load(folder), 0.4, seed=3)
    if METHODS[method].method.least_trusted:
        noisy = with_known_pairs(noisy, "20", seed=3)
    with TemporaryDirectory() as out:
        run = truepair.fit(
            noisy,
            method=truepair.build_method(method, options),
            dev=truepair.load(folder, "dev"),
            out=Path(out) / "run",
            setup=Setup(model=model or GlobalConfig(width=16, word_width=8)),
            seed=7,
            minimum_count=1,
            **{"epochs": 4, "batch_size": 24, "learning_rate": 5e-3, **settings},
        )
        return {
            "losses": [round(line["loss"], 5) for line in run.metrics],
            "auroc": round(run.result["detection"]["auroc"], 3),
        }


LOCAL = {"width": 16, "word_width": 8, "similarity_width": 8, "dropout": 0.0}

DISNCL = {
    "warm_up_epochs": 6,
    "warm_up_negatives": "all",
    "least_clean": 0.0,
    "head_rate": 1.0,
    "main_rate": 1.0,
    "subspace_width": 8,
    "hidden_width": 8,
}

CASES = {
    "triplet": ("triplet", {"warm_up_epochs": 2}),
    "infonce": ("infonce", {}),
    "crcl": ("crcl", {"pieces": (4,)}),
    "truepair, one teacher": ("truepair", {"pieces": (4,), "distillation": 1.0, "label_memory": "momentum"}),
    "truepair": ("truepair", {"pieces": (3, 3)}),
    "gsc": ("gsc", {}),
    "gsc dual": ("gsc", {"co_train": True}),
    "ugncl": ("ugncl", {"warm_up_epochs": 2, "least_clean": 0.0}),
    "disncl": ("disncl", DISNCL),
    "disncl on sgr": ("disncl", {**DISNCL, "warm_up_epochs": 1}, SGRConfig(**LOCAL)),
    "rince": ("rince", {}),
    "rcl": ("rcl", {}),
    "decl": ("decl", {"warm_up_epochs": 2}),
    "ncr": ("ncr", {"warm_up_epochs": 2, "mixture": "released"}),
    "bicro": ("bicro", {"warm_up_epochs": 2, "noisy_from": 0.0, "mixture": "released"}),
    "bicro on saf": ("bicro", {"warm_up_epochs": 2, "mixture": "released", "co_train": False}, SAFConfig(**LOCAL)),
    "l2rm": ("l2rm", {"warm_up_epochs": 2, "mixture": "released", "rematch_weight": 1.0}),
    "osa": ("osa", {"warm_up_epochs": 2}),
    "in2r": ("in2r", {"warm_up_epochs": 2, "mixture": "released", "rematch_weight": 0.2}),
    "mscn": ("mscn", {"warm_up_epochs": 2, "meta_pairs": 8, "head_width": 8, "mixture": "released"}),
    "npc": ("npc", {"warm_up_epochs": 2, "trial_rate": 1e-3, "mixture": "released", "clean": 0.5}),
    "rcsl": ("rcsl", {"warm_up_epochs": 1, "mixture": "released", "mining_from": 0.5}),
    "infonce on sgr": ("infonce", {}, SGRConfig(**LOCAL)),
    "gsc on saf": ("gsc", {}, SAFConfig(**LOCAL)),
    "ugncl on sgr": ("ugncl", {"warm_up_epochs": 2, "least_clean": 0.0}, SGRConfig(**LOCAL)),
}


# Two pairs of a batch must be clean for DisNCL's information. Its global engine learns that far; SGR learns too slowly,
# and what it learns late depends on the processor's order of additions: there, small batches of a network that hardly
# moves hold such pairs by chance, the same ones under ATEN_CPU_CAPABILITY=default, avx2 and avx512.
SETTINGS = {
    "disncl": {"epochs": 8, "batch_size": 8, "learning_rate": 1e-2},
    "disncl on sgr": {"batch_size": 3, "learning_rate": 1e-4},
}


def test_every_method_has_a_curve():
    assert {case[0] for case in CASES.values()} | set(test_label_runs.GOLDEN) >= set(METHODS)


@pytest.mark.parametrize("case", CASES)
def test_training_curve(case, tiny):
    found = curve(tiny, *CASES[case], **SETTINGS.get(case, {}))
    assert found["losses"] == pytest.approx(GOLDEN[case]["losses"], rel=2e-3)
    assert found["auroc"] == pytest.approx(GOLDEN[case]["auroc"], abs=0.02)


if __name__ == "__main__":
    from tests.conftest import write_tiny_precomp

    torch.set_num_threads(1)
    with TemporaryDirectory() as place:
        tiny_folder = write_tiny_precomp(Path(place) / "tiny")
        for name, given in CASES.items():
            print(f'    "{name}": {curve(tiny_folder, *given, **SETTINGS.get(name, {}))},')
