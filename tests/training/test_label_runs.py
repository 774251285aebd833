"""Runs that learn from class labels: a golden curve of each method, and exact resume."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from pyarrow import parquet
from safetensors.torch import load_file

import truepair
from tests.methods.labelled import labelled_pairs
from truepair.engines.config import GlobalConfig, MLPConfig
from truepair.methods import build_method
from truepair.training import loop
from truepair.training.setup import Setup

GOLDEN = {
    "ce": {
        "losses": [2.70547, 2.43512, 2.30629, 2.15851, 2.10152, 2.06699, 1.96325],
        "map": [0.392, 0.46, 0.532, 0.644, 0.692, 0.773, 0.78],
        "right": 0.883,
    },
    "mrl": {
        "losses": [1.74965, 1.51265, 1.44853, 1.31593, 1.19844, 1.16555, 1.06585],
        "map": [0.532, 0.65, 0.751, 0.785, 0.749, 0.733, 0.739],
        "right": 0.617,
    },
    "elr-cmr": {
        "losses": [3.76133, 3.49268, 3.55164, 3.52714, 3.58181, 3.82084, 3.98072],
        "map": [0.47, 0.556, 0.636, 0.753, 0.746, 0.775, 0.78],
        "right": 0.667,
    },
    "uot-rcl": {  # the data show little noise: no L_BHG
        "losses": [2.70547, 2.43512, 2.30629, 2.15851, 1.58331, 2.03138, 2.42349],
        "map": [0.392, 0.46, 0.532, 0.644, 0.686, 0.75, 0.753],
        "right": 0.85,
    },
    "uot-rcl, full doubt": {
        "losses": [2.70547, 2.43512, 2.30629, 2.15851, 2.70456, 2.98145, 3.23847],
        "map": [0.392, 0.46, 0.532, 0.644, 0.7, 0.774, 0.778],
        "right": 0.8,
    },
}

FULL_DOUBT = {"doubt_from": 0.0, "doubt_to": 0.0}
OPTIONS = {"epochs": 7, "batch_size": 16, "learning_rate": 0.01, "seed": 4}


def fit(out, method, **more):
    return truepair.fit(
        labelled_pairs(60, wrong=0.3),
        method=method,
        dev=labelled_pairs(24, seed=1),
        out=out,
        setup=Setup(model=MLPConfig(width=8, hidden_width=12)),
        **{**OPTIONS, **more},
    )


def curve(method):
    """Loss and dev mAP of every epoch, and how many labels are right in the end."""
    chosen = build_method("uot-rcl", FULL_DOUBT) if method == "uot-rcl, full doubt" else method
    with TemporaryDirectory() as out:
        run = fit(Path(out) / "run", chosen)
        return {
            "losses": [round(line["loss"], 5) for line in run.metrics],
            "map": [round(line["dev"]["map"], 3) for line in run.metrics],
            "right": round(run.result["labels"]["corrected_accuracy"], 3),
        }


@pytest.mark.parametrize("method", GOLDEN)
def test_training_curve_is_what_it_was(method):
    found, golden = curve(method), GOLDEN[method]
    assert found["losses"] == pytest.approx(golden["losses"], abs=2e-3)
    assert found["map"] == pytest.approx(golden["map"], abs=0.02)
    assert found["right"] == pytest.approx(golden["right"], abs=0.04)


class Stop(Exception):
    """Stands for whatever ends a process without warning."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("reference") / "run", "uot-rcl")


@pytest.mark.parametrize("batches", [3, 19, 24])
@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_run_cut_off_resumes_exactly(tmp_path, reference, monkeypatch, batches, how):
    """In the warm-up, and in the middle of epochs whose labels and confident set were made before they began."""
    train_batch, done = loop.Training._train_batch, []

    def dying(self, *arguments):
        result = train_batch(self, *arguments)
        done.append(1)
        if len(done) == batches:
            if how == "killed":
                raise Stop
            import signal

            signal.raise_signal(signal.SIGTERM)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", dying)
        with pytest.raises((Stop, KeyboardInterrupt)):
            fit(tmp_path / "run", "uot-rcl")
    resumed = fit(tmp_path / "run", "uot-rcl", resume=True)
    for name in ("metrics.jsonl", "result.json"):
        assert (resumed.path / name).read_bytes() == (reference.path / name).read_bytes(), name
    ours, theirs = (load_file(run.path / "state" / "checkpoint.safetensors") for run in (resumed, reference))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    tables = [parquet.read_table(run.path / "pairs.parquet") for run in (resumed, reference)]
    assert tables[0].equals(tables[1])


def test_methods_of_labels_train_the_global_engine_on_words(tiny, tmp_path):
    """Any engine of one vector an item will do, and any column of classes."""
    from dataclasses import replace

    train, dev = truepair.load(tiny), truepair.load(tiny, "dev")
    red, classes = [["red" in caption for caption in pairs.texts.captions] for pairs in (train, dev)], ("no", "red")
    train, dev = (
        replace(pairs, labels=torch.tensor(found).long().numpy()[pairs.text_index], class_names=classes)
        for pairs, found in zip((train, dev), red, strict=True)
    )
    run = truepair.fit(
        train,
        method="uot-rcl",
        dev=dev,
        out=tmp_path / "run",
        setup=Setup(model=GlobalConfig(width=16, word_width=8)),
        epochs=6,
        minimum_count=1,
        batch_size=16,
    )
    assert run.result["labels"]["corrected_accuracy"] is None  # nobody knows the truth
    assert run.result["labels"]["changed"] >= 0
    assert 0 < run.result["dev"]["map"] <= 1


def test_mixed_precision_trains_and_keeps_cosines_whole(tmp_path):
    run = fit(tmp_path / "run", "uot-rcl", precision="bf16")
    exact = fit(tmp_path / "exact", "uot-rcl")
    found, expected = ([line["loss"] for line in one.metrics] for one in (run, exact))
    assert found != expected
    assert found == pytest.approx(expected, rel=0.05)


def test_only_runs_with_labels_name_classes(tiny, tmp_path, reference):
    assert reference.folder.read_config()["classes"] == [f"class {k}" for k in range(4)]
    setup = Setup(model=GlobalConfig(width=16, word_width=8))
    plain = truepair.fit(
        truepair.load(tiny), out=tmp_path / "run", setup=setup, epochs=1, minimum_count=1, method="infonce"
    )
    assert "classes" not in plain.folder.read_config()


if __name__ == "__main__":
    for name in sys.argv[1:] or ("ce", "mrl", "elr-cmr", "uot-rcl"):
        print(f'    "{name}": {curve(name)},')
