"""Held-out first labels of our own method in whole runs: what they change, and that a resumed run has them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import truepair
from tests.conftest import MANY_WORDS, write_tiny_precomp
from tests.training.test_resume import Stop, assert_same_run, stopped_after
from truepair.correspondence.mixture_proportion import Estimate
from truepair.engines.config import GlobalConfig, MLPConfig, SGRConfig
from truepair.methods import build_method
from truepair.methods.truepair import first_labels
from truepair.methods.truepair import method as method_module
from truepair.methods.truepair.first_labels import PairVectors
from truepair.training.setup import Setup

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 3, "seed": 5, "batch_size": 128, "minimum_count": 1, "learning_rate": 5e-3}
PIECES = {"pieces": (3,)}


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """1,200 pairs of 600 images."""
    return write_tiny_precomp(
        tmp_path_factory.mktemp("many") / "many", images={"train": 600, "dev": 16}, words=MANY_WORDS
    )


@pytest.fixture
def half(monkeypatch):
    """That half are surely mismatched takes more pairs than these tests have; that a quarter are will do."""
    monkeypatch.setattr(first_labels, "MOST", 0.5)
    monkeypatch.setattr(first_labels, "SURELY", 0.25)


def fit(folder, out, noise, setup=SMALL, options=PIECES, method=None, **more):
    pairs = truepair.load(folder)
    noisy = truepair.inject_noise(pairs, noise, seed=1) if noise else pairs
    method = method or build_method("truepair", options)
    return truepair.fit(noisy, method=method, dev=truepair.load(folder, "dev"), out=out, setup=setup, **QUICK | more)


def without_first(run):
    return [
        {name: value for name, value in line.items() if not name.startswith("first_") and name != "network_auroc"}
        for line in run.metrics
    ]


@pytest.mark.parametrize(
    ("model", "batch"),
    [
        (SMALL.model, 128),
        (SGRConfig(width=16, word_width=8, similarity_width=8, reasoning_steps=1), 64),
        (MLPConfig(width=16, hidden_width=16), 128),
    ],
)
def test_most_pairs_mismatched_the_first_labels_are_held_out(many, tmp_path, half, model, batch):
    run = fit(many, tmp_path / "run", 0.7, Setup(model=model), batch_size=batch)
    first = run.metrics[0]
    assert first["first_share"] == pytest.approx(0.7, abs=0.1) and first["first_recall"] > 0.5
    assert first["disbelieved"] > 0.5
    assert first["detection"]["auroc"] > 0.9  # before a single label is refined
    assert "first_share" not in run.metrics[1]
    share = run.result["mismatch_share"]
    assert run.result["mismatch_share_by"] == "linear models that have not seen the pairs"
    assert share["low"] < share["share"] == first["first_share"] < share["high"] == first["first_share_high"]
    assert share["high"] > 0.7 * 0.9 and share["low"] < 0.7
    for line in run.metrics[2:3] + run.metrics[5:]:  # as many are believed as match by the share
        assert line["disbelieved"] == pytest.approx(first["first_share"], abs=0.01)
    options = PIECES | {"first_labels": "given"}
    given = fit(many, tmp_path / "given", 0.7, Setup(model=model), options, epochs=1, batch_size=batch)
    assert given.metrics[0]["disbelieved"] == 0 and "first_share" not in given.metrics[0]
    assert "mismatch_share" not in given.result


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_most_pairs_matched_and_the_network_learns_nothing_changes(many, tmp_path, noise):
    quick = {"batch_size": 32, "learning_rate": 1e-2}
    run = fit(many, tmp_path / "run", noise, options=PIECES | {"least_believed": "any"}, **quick)
    given = fit(many, tmp_path / "given", noise, options=PIECES | {"first_labels": "given"}, **quick)
    assert noise == 0 or run.metrics[-1]["detection"]["auroc"] > 0.8  # it learns
    assert run.metrics[0]["first_share"] < 0.6
    assert without_first(run) == without_first(given)
    assert (run.folder.model).read_bytes() == (given.folder.model).read_bytes()


def test_most_pairs_matched_but_the_network_has_learned_nothing_they_are_taken_later(many, tmp_path):
    """At a learning rate at which three epochs change nothing, before labels are refined for the first time."""
    slow = {"learning_rate": 1e-6}
    run = fit(many, tmp_path / "run", 0.4, **slow)
    first, second, third = run.metrics[:3]
    assert first["first_share"] == pytest.approx(0.4, abs=0.15) and first["first_auroc"] > 0.7
    assert first["disbelieved"] == second["disbelieved"] == 0 and first["detection"]["auroc"] == 0.5
    assert third["network_auroc"] < 0.6 and third["detection"]["auroc"] > 0.9
    for line in (third, *run.metrics[5:]):
        assert line["disbelieved"] == pytest.approx(first["first_share"], abs=0.01)
    given = fit(many, tmp_path / "given", 0.4, options=PIECES | {"first_labels": "given"}, **slow)
    assert given.metrics[2]["detection"]["auroc"] < 0.6


def test_a_cut_off_run_takes_them_later_too(many, tmp_path):
    whole = fit(many, tmp_path / "whole", 0.4, learning_rate=1e-6)
    assert "network_auroc" in whole.metrics[2]
    cut_off(many, tmp_path, whole, (8, 15, 25), 0.4, learning_rate=1e-6)


def test_a_cut_off_run_keeps_them(many, tmp_path, half):
    cut_off(many, tmp_path, fit(many, tmp_path / "whole", 0.7), (1, 8), 0.7)


def test_a_cut_off_run_begins_anew_too(many, tmp_path, half, monkeypatch):
    """The first network is taken to find hardly any pair mismatched."""
    monkeypatch.setattr(method_module, "share_by_network", lambda memory, judged: Estimate(0.1, 0.05, 0.15, 0.01, 0.5))
    whole = fit(many, tmp_path / "whole", 0.7)
    first, fourth = whole.metrics[0], whole.metrics[3]
    assert first["disbelieved"] > 0.5 and fourth["network_share"] == 0.1 and fourth["disbelieved"] == 0
    assert whole.result["mismatch_share"]["share"] == 0.1
    assert whole.result["mismatch_share_by"] == "the network of the first stage"
    assert whole.metrics[2]["detection"]["auroc"] > 0.8 and fourth["detection"]["auroc"] == 0.5  # all labels are 1
    cut_off(many, tmp_path, whole, (15, 35, 45), 0.7)


def cut_off(folder, tmp_path, whole, after, noise, **options):
    """A run cut off after so many batches, each time from where it had been cut off before, ends as the whole one."""
    cut = tmp_path / "cut"
    for before, batches in pairwise((0, *after)):
        with pytest.MonkeyPatch.context() as patch, stopped_after(patch, batches - before, saved=True):
            fit(folder, cut, noise, resume=before > 0, **options)
    assert_same_run(fit(folder, cut, noise, resume=True, **options).path, whole.path)


def test_a_method_that_was_stopped_while_it_looked_begins_anew(many, tmp_path, half, monkeypatch):
    """The same object goes on: what it had seen by then is not counted twice."""
    whole, method, add = (
        fit(many, tmp_path / "whole", 0.7, epochs=1),
        build_method("truepair", PIECES),
        PairVectors.add,
    )

    def stopping(self, forward):
        add(self, forward)
        if stopping.left:
            stopping.left = False
            raise Stop

    stopping.left = True
    monkeypatch.setattr(PairVectors, "add", stopping)
    with pytest.raises(Stop):
        fit(many, tmp_path / "cut", 0.7, method=method, epochs=1)
    again = fit(many, tmp_path / "cut", 0.7, method=method, epochs=1, resume=True)
    assert again.metrics == whole.metrics


def test_with_too_little_memory_it_trains_without_them_and_says_so(many, tmp_path, monkeypatch, caplog):
    given = fit(many, tmp_path / "given", 0.5, options=PIECES | {"first_labels": "given"}, epochs=1)
    monkeypatch.setattr("truepair.device.memory_of", lambda device: 1000)
    monkeypatch.setattr("truepair.training.fit.check_memory", lambda *_: None)
    run = fit(many, tmp_path / "run", 0.5, epochs=1)
    assert (
        "a linear model of 1,200 pairs (--truepair-first-labels given does without) needs about 0.0 GB" in caplog.text
    )
    assert caplog.text.count("trained without it") == 1
    assert [line["loss"] for line in run.metrics] == [line["loss"] for line in given.metrics]
    assert "mismatch_share" not in run.result


@pytest.mark.parametrize("what", ["captions", "images", "few"])
def test_what_tells_nothing_is_left_alone(many, tmp_path, what):
    pairs = truepair.load(many)
    if what == "few":
        pairs = pairs.take(np.arange(60)).compact()
    elif what == "captions":
        pairs = pairs.with_captions(dict.fromkeys(range(len(pairs)), "the same"))
    else:
        same = np.repeat(np.asarray(pairs.images.features[:1]), len(pairs.images), axis=0)
        pairs = replace(pairs, images=replace(pairs.images, features=same))
    run = truepair.fit(pairs, method="truepair", out=tmp_path / "run", setup=SMALL, **QUICK)
    assert "first_share" not in run.metrics[0] and run.metrics[0]["disbelieved"] == 0
