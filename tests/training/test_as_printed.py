"""`as_printed`: the values are those of the papers, every difference of a default has a reason, every preset trains."""

import math
import re
from dataclasses import asdict, replace

import pytest

import truepair
from tests.methods.labelled import labelled_pairs
from truepair.cli.main import build_parser, main
from truepair.cli.train import job_of
from truepair.data.given.known_pairs import with_known_pairs
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.methods import METHODS
from truepair.methods.base import Method
from truepair.training.fit import open_run

# Written from the papers: epochs, batch, rate, epochs before the decay, optimizer, decay of weights, share of words and
# of regions altered; the first engine and its widths.
SGRAF = {"width": 1024, "word_width": 300, "similarity_width": 256, "dropout": 0.4, "reasoning_steps": 3}
MRL = {"width": 512, "hidden_width": 4096, "regions": "mean"}
PRETRAINED = {
    "encoder": "", "tune": "full", "tower_rate": None, "lora_rank": 16, "lora_dropout": 0.0, "checkpointing": False,
    "temperature": "own",
}  # fmt: skip
OF_LABELS = ((100, 100, 1e-4, 100, "adam", 0.0, 0.0, 0.0), "mlp", MRL)
TRAINING = {
    "triplet": (
        (30, 128, 2e-4, 15, "adam", 0.0, 0.0, 0.0),
        "global",
        {"width": 1024, "word_width": 300, "pooling": "mean"},
    ),
    "infonce": ((32, 128, 5e-4, 15, "adamw", 1e-4, 0.2, 0.2), "sgr", SGRAF),
    "crcl": ((32, 128, 5e-4, 15, "adamw", 1e-4, 0.2, 0.2), "sgr", SGRAF),  # Table 5
    "gsc": ((20, 128, 2e-4, 15, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),  # 4.2; epochs are not printed
    "ugncl": ((45, 128, 2e-4, 35, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),  # 4.2: 40 after 5; the decay is NCR's
    "disncl": ((55, 128, 2e-4, 30, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),  # VI-A3: 50 after 5, 0.1x after 25
    "rince": ((20, 128, 2e-4, 15, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),  # as GSC
    "rcl": ((30, 128, 2e-4, 15, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),  # the released script
    "decl": ((45, 128, 2e-4, 25, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),
    "ncr": ((45, 128, 2e-4, 35, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),
    "bicro": ((50, 128, 2e-4, 40, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),
    "l2rm": ((40, 128, 2e-4, 20, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),
    "osa": ((5, 256, 1e-5, 4, "adamw", 0.2, 0.0, 0.0), "pretrained", PRETRAINED),
    "mscn": ((55, 64, 2e-4, 35, "adam", 0.0, 0.0, 0.0), "sgr", SGRAF),
    "npc": ((5, 256, 2e-7, 4, "adamw", 0.2, 0.0, 0.0), "pretrained", PRETRAINED),
    "in2r": (
        (41, 128, 5e-4, 16, "adamw", 1e-4, 0.2, 0.2),
        "global",
        {"width": 1024, "word_width": 300, "pooling": "gpo"},
    ),
    "rcsl": (
        (40, 256, 5e-4, 15, "adamw", 0.01, 0.2, 0.2),
        "global",
        {"width": 1024, "word_width": 300, "pooling": "gpo"},
    ),
    "ce": OF_LABELS,  # UOT-RCL, V-B
    "mrl": OF_LABELS,
    "elr-cmr": OF_LABELS,
    "uot-rcl": OF_LABELS,
}
FURTHER_DECAYS = {
    "rcsl": (15, 0.1),
    "in2r": (15, 0.1),
    "gsc": (15, 0.2),
    "rince": (15, 0.2),
}  # 4.2: every 15 epochs, by 0.2
OPTIONS = {
    "triplet": {"margin": 0.2, "warm_up_epochs": 0},
    "infonce": {"temperature": 0.05},
    "crcl": {
        "temperature": 0.05, "scale": 5.0, "active_weight": 1.0, "exponent": None, "complementary": "tan",
        "labels": "refined", "momentum": 0.8, "threshold": 0.1, "freeze_epochs": 2, "pieces": (7, 7, 7),
    },
    "gsc": {
        "cross_modal_temperature": 0.07, "intra_modal_temperature": 1.0, "intra_modal_weight": 0.01,
        "intra_modal_pairs": "believed", "cross_modal_momentum": 0.7, "intra_modal_momentum": 0.7,
        "mixture": "plain", "warm_up_epochs": 0, "co_train": True, "exchange": "in_turn",
    },
    "ugncl": {
        "evidence": "exp_softplus", "temperature": 0.1, "background": 0.25, "directions": "sum",
        "division": "uncertainty", "threshold": 0.5, "uncertainty": "value", "tolerance": 1.0, "soft_label": "belief",
        "label_threshold": 0.5, "hard_weight": "one", "margins": "trusted", "margin": 0.2, "curve": 10.0,
        "sharpness": 10.0, "kl_weight": 0.1, "divergence": "sum", "ranking_weight": 0.8, "ranking_total": "mean",
        "warm_up_epochs": 5, "hardness": "printed", "least_negatives": 5, "least_clean": 0.0,
    },
    "disncl": {
        "disentangler": "disncl", "align_weight": 1.0, "soft_weight": 1.0, "disentangle_weight": 1.0,
        "regularizer_weight": 1.0, "adversarial_weight": 1.0, "balance": 0.5, "invariant_weight": 0.1,
        "exclusive_weight": 0.1, "given_weight": 0.5, "temperature": 0.05, "log_floor": -100.0, "margin": 0.2,
        "curve": 10.0, "warm_up_epochs": 5, "warm_up_negatives": "hardest", "warm_up_least": 0.5,
        "heads": "plain", "subspace_width": 512, "hidden_width": 256, "head_rate": 1.0, "main_rate": 1.0,
        "least_clean": 0.0,
    },
    "rince": {"temperature": 0.07, "exponent": 0.01, "density": 0.01},
    "rcl": {"temperature": 0.05, "form": "log", "exponent": None},
    "decl": {
        "evidence": "exp_tanh", "temperature": 0.1, "background": None, "kl_weight": 0.1, "divergence": "sum",
        "margin": 0.2, "hinge_weight": 0.8, "hinge_total": "sum", "warm_up_epochs": 5, "hardness": "printed",
        "least_negatives": 5,
    },
    "ncr": {
        "margin": 0.2, "curve": 10.0, "warm_up_epochs": 5, "threshold": 0.5, "mixture": "released",
        "noisy_from": 0.5, "co_train": True,
    },
    "bicro": {
        "margin": 0.2, "curve": 10.0, "warm_up_epochs": 10, "warm_up_share": 0.3, "threshold": 0.5, "mixture":
        "beta", "least_label": 0.5, "noisy_from": 0.5, "co_train": True,
    },
    "l2rm": {
        "margin": 0.2, "temperature": 0.05, "warm_up_epochs": 5, "threshold": 0.5, "mixture": "beta",
        "cost": "distance", "cost_rate": 10.0, "mass": 0.1, "epsilon": 0.01, "targets": "full",
        "log_floor": None, "rematch_weight": None,
    },
    "osa": {
        "threshold": None,
        "temperature": 0.05, "weight": "released", "warm_up_epochs": 0,
    },
    "mscn": {
        "margin": 0.2, "warm_up_epochs": 5, "negatives": 0.0, "threshold": 0.5, "mixture": "released",
        "head_width": 64, "head_rate": 0.085, "meta_pairs": 32, "trial": "taken", "trial_rate": None,
        "co_train": True,
    },
    "npc": {
        "temperature": 0.05, "clean": 0.9, "mixture": "released", "trial_rate": 2e-7, "weight": "tanh",
        "bank": "trained", "averaged": False, "warm_up_epochs": 0,
    },
    "in2r": {
        "temperature": 0.05, "margin": 0.2, "intra_modal_margin": 0.3, "second_pass": "taken",
        "warm_up_epochs": 1, "threshold": 0.5, "mixture": "released", "neighbours": 5,
        "bank": 65536, "rematch_weight": None, "co_train": True,
    },
    "rcsl": {
        "margin": 0.2, "temperature": 0.03, "align_weight": None, "uniform_weight": None, "mining_weight": 1.0,
        "mining_from": 0.625, "mine_once": True, "restart": True, "partners": "encoded", "warm_up_epochs": 5,
        "threshold": 0.5, "mixture": "released", "paired": "known",
    },
    "ce": {"temperature": 1.0},
    "mrl": {"temperature": 1.0, "clustering_weight": 0.7},
    "elr-cmr": {
        "temperature": 1.0, "regularizer_weight": 3.0, "momentum": 0.7, "first_weight": 0.7, "last_weight": 0.3,
    },
    "uot-rcl": {
        "warm_up_epochs": 2, "temperature": 1.0, "relation_temperature": 1.0, "match_temperature": 1.0,
        "momentum": 0.99, "consistency": "printed", "neighbours": None, "per_class": 5,
        "first_mass": 0.2, "last_mass": 0.8, "mass_constraint": "printed", "doubt_from": 0.0, "doubt_to": 0.0,
        "epsilon": 0.05, "relation_epsilon": 0.05,
        "class_prior": "uniform", "relation_weight": 0.4, "pair_weight": 0.0, "confident": "consistent",
        "held_out_weight": 0.0, "remainder": "none", "relation_from": 0.0, "keep_labels": False,
    },
}  # fmt: skip


FOR_DATA = {  # what the papers print or release for other data than their first
    ("crcl", "coco"): {"pieces": (4, 4, 4), "epochs": 22, "decay_after": 12},  # Table 5
    ("crcl", "cc152k"): {"pieces": (7, 7, 7), "epochs": 42, "decay_after": 20},
    ("crcl", "cc152k-vse"): {"pieces": (7, 7, 7), "epochs": 32, "decay_after": 17},
    ("ugncl", "coco"): {"warm_up_epochs": 2, "epochs": 22, "decay_after": 12},  # 4.2: 20 after 2
    ("ncr", "coco"): {"warm_up_epochs": 10, "epochs": 30, "learning_rate": 2e-4, "decay_after": 20},  # 10 + 20, 10
    ("ncr", "cc152k"): {"warm_up_epochs": 10, "epochs": 50, "learning_rate": 2e-4, "decay_after": 40},  # 10 + 40, 30
    ("rcl", "coco"): {"epochs": 20, "learning_rate": 5e-4, "decay_after": 10},
    ("l2rm", "coco"): {"warm_up_epochs": 10, "epochs": 30, "decay_after": 20, "epsilon": 0.07},
    ("l2rm", "cc152k"): {"warm_up_epochs": 10, "epochs": 50, "decay_after": 30, "epsilon": 0.07},
    ("uot-rcl", "nuswide10"): {"neighbours": 200, "batch_size": 500},  # V-B
    ("uot-rcl", "xmedianet"): {"neighbours": 150, "batch_size": 100},
}


@pytest.mark.parametrize(("name", "data"), FOR_DATA)
def test_the_values_for_other_data_are_those_of_the_paper(name, data):
    printed = truepair.as_printed(name, data=data)
    found = {**asdict(printed.setup.training), **asdict(printed.method.config)}
    assert FOR_DATA[name, data].items() <= found.items()


def test_every_printed_method_is_checked():
    assert set(TRAINING) == {name for name, place in METHODS.items() if place.method.printed is not None}


@pytest.mark.parametrize("name", TRAINING)
def test_the_values_are_those_of_the_paper(name):
    printed = truepair.as_printed(name)
    training, share = printed.setup.training, printed.setup.augmentation
    found = (training.epochs, training.batch_size, training.learning_rate, training.decay_epoch, training.optimizer)
    found += (training.weight_decay, share.word_share, share.region_share)
    assert (found, printed.setup.model.name, asdict(printed.setup.model)) == TRAINING[name]
    assert (training.decay_every, training.decay_factor) == FURTHER_DECAYS.get(name, (None, 0.1))
    assert asdict(printed.method.config) == OPTIONS[name]


@pytest.mark.parametrize("name", TRAINING)
def test_every_other_default_has_its_reason(name):
    printed = truepair.as_printed(name)
    for model in printed.preset.models:
        departures = truepair.as_printed(name, model).departures  # a missing reason is a KeyError
        assert departures
        assert all(departure.reason and departure.printed != departure.default for departure in departures)
    own = {option for option in printed.preset.reasons if option.startswith("method.")}
    assert own <= {departure.option for departure in printed.departures}  # no reason without a difference


@pytest.mark.parametrize("name", TRAINING)
def test_every_preset_trains(name, tiny, tmp_path):
    """In small networks, and cut to the epochs that the method needs at least."""
    printed = truepair.as_printed(name)
    if printed.model.name == "pretrained":
        pytest.skip("needs a model to start from: tests/engines/pretrained")
    options = {**printed.preset.method}
    options |= {key: 0 for key in ("warm_up_epochs",) if key in options}
    options |= {key: 8 for key in ("subspace_width", "hidden_width") if key in options}
    options |= {"pieces": (3,)} if name == "crcl" else {}
    widths = {"width": 16, "word_width": 8, "similarity_width": 8, "hidden_width": 8}
    model = replace(printed.model, **{key: value for key, value in widths.items() if hasattr(printed.model, key)})
    method = truepair.build_method(name, options)
    pairs = labelled_pairs(60, wrong=0.3) if method.learns_from_labels else truepair.load(tiny)
    if method.least_trusted:
        pairs = with_known_pairs(truepair.inject_noise(pairs, 0.3, seed=0), "30", seed=0)
    setup = replace(printed.setup, model=model)
    run = truepair.fit(pairs, method=method, setup=setup, out=tmp_path / "run", epochs=1, minimum_count=1)
    assert math.isfinite(run.metrics[-1]["loss"])


def test_other_engines_of_the_paper_and_none_else():
    assert truepair.as_printed("crcl", "global").setup.model.pooling == "gpo"
    assert truepair.as_printed("gsc", "saf").setup.model.name == "saf"
    with pytest.raises(InputError, match="reports sgr and saf, not global; choose one of them, or add --ablation"):
        truepair.as_printed("gsc", "global")
    there = truepair.as_printed("gsc", "global", any_engine=True)
    assert there.model == GlobalConfig() and there.preset == truepair.as_printed("gsc").preset
    assert truepair.as_printed("crcl", "global", any_engine=True).model.pooling == "gpo"  # one of the paper's
    with pytest.raises(InputError, match="engine is 'nothing'"):
        truepair.as_printed("gsc", "nothing", any_engine=True)
    with pytest.raises(InputError, match="expected one of triplet"):
        truepair.as_printed("csg")


def test_a_method_without_printed_settings_says_so(monkeypatch):
    monkeypatch.setattr(METHODS["crcl"].method, "printed", Method.printed)
    with pytest.raises(InputError, match="crcl has no settings as printed"):
        truepair.as_printed("crcl")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--epochs", "5"], "--epochs 5 contradicts --as-printed: .* has 30"),
        (["--width", "16"], "--width 16 contradicts --as-printed: .* has 1024"),
        (["--triplet-margin", "0.1"], "--triplet-margin 0.1 contradicts --as-printed: .* has 0.2"),
        (["--warm-up", "0.5"], "--warm-up 0.5 contradicts --as-printed: .* has 0.0"),
        (["--schedule", "cosine"], "--schedule cosine contradicts --as-printed: .* has steps"),
        (["--decay-every", "5"], "--decay-every 5 contradicts --as-printed: .* has none"),
        (["--word-share", "0.2"], "--word-share 0.2 contradicts --as-printed: .* has 0.0"),
        (["--model", "sgr"], "reports global, not sgr"),
    ],
)
def test_options_that_contradict_are_refused_on_the_command_line(option, said, tiny, tmp_path, capsys):
    command = ["train", str(tiny), "--method", "triplet", "--as-printed", "--out", str(tmp_path / "run"), *option]
    assert main(command) == 2
    found = " ".join(capsys.readouterr().err.split())
    assert re.search(said, found), found
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", TRAINING)
def test_the_course_of_the_learning_rate_is_fixed(name):
    """So that an option that changes it contradicts the print; NPC's rises, which its page says."""
    fixed = METHODS[name].method.printed.training.keys()
    assert "schedule" in fixed and {"warm_up", "decay_after"} & fixed | {"npc", "osa"} & {name}


@pytest.mark.parametrize(
    ("method", "option", "message"),
    [
        ("ugncl", "--ugncl-background", "no effect beside --as-printed: .* has --ugncl-evidence exp_softplus"),
        (
            "disncl",
            "--disncl-warm-up-least",
            "no effect beside --as-printed: .* has --disncl-warm-up-negatives hardest",
        ),
    ],
)
def test_an_option_that_the_print_leaves_without_effect_is_refused(method, option, message, tiny, tmp_path, capsys):
    command = ["train", str(tiny), "--method", method, "--as-printed", "--out", str(tmp_path / "run"), option, "0.3"]
    assert main(command) == 2
    assert re.search(option + " has " + message, capsys.readouterr().err)
    assert not (tmp_path / "run").exists()


def test_an_ablation_may_be_of_another_engine(tiny):
    """All else stays as printed; the engine has its own defaults but for the options given."""
    command = ["train", str(tiny), "--method", "ugncl", "--as-printed", "--ablation", "--model", "global"]
    job = job_of(build_parser(command).parse_args([*command, "--width", "16", "--out", "run"]))
    assert job.setup.model == GlobalConfig(width=16)
    printed = truepair.as_printed("ugncl")
    assert job.method_options == printed.preset.method and job.setup.training == printed.setup.training
    assert job.setup.augmentation == printed.setup.augmentation


def test_training_as_printed_on_the_command_line(tiny, tmp_path, monkeypatch):
    preset = METHODS["triplet"].method.printed
    small = replace(preset, models={"global": replace(preset.models["global"], width=16)})
    small = replace(small, training={**preset.training, "epochs": 2, "decay_after": 1})
    monkeypatch.setattr(METHODS["triplet"].method, "printed", small)
    command = ["train", str(tiny), "--method", "triplet", "--as-printed", "--out", str(tmp_path / "run")]
    assert main([*command, "--minimum-count", "1", "--seed", "3", "--optimizer", "adam", "--quiet"]) == 0
    config = open_run(tmp_path / "run").folder.read_config()
    assert config["training"]["optimizer"] == "adam"
    assert config["training"]["seed"] == 3
    assert config["augmentation"] == {"word_share": 0.0, "region_share": 0.0}
    assert config["method"]["options"] == {"margin": 0.2, "warm_up_epochs": 0}
