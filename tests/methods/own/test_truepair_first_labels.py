"""Held-out first labels of our own method: where they are taken, what they change, and that a resumed run has them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import truepair
from tests.conftest import MANY_WORDS, write_tiny_precomp
from tests.training.test_resume import Stop, assert_same_run, stopped_after
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.mixture_proportion import Estimate
from truepair.engines.config import GlobalConfig, MLPConfig, SGRConfig
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair import first_labels
from truepair.methods.truepair import method as method_module
from truepair.methods.truepair.credits import uppermost
from truepair.methods.truepair.first_labels import FirstLabels, PairVectors
from truepair.methods.truepair.method import FIRST_AUROC, LINEAR, SHARE, SYNTHETIC
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
    monkeypatch.setattr(method_module, "share_by_network", lambda memory: Estimate(0.1, 0.05, 0.15, 0.01, 0.5))
    whole = fit(many, tmp_path / "whole", 0.7)
    first, fourth = whole.metrics[0], whole.metrics[3]
    assert first["disbelieved"] > 0.5 and fourth["network_share"] == 0.1 and fourth["disbelieved"] == 0
    assert whole.result["mismatch_share"]["share"] == 0.1
    assert whole.metrics[2]["detection"]["auroc"] > 0.8 and fourth["detection"]["auroc"] == 0.5  # all labels are 1
    cut_off(many, tmp_path, whole, (15, 35, 45), 0.7)


def cut_off(folder, tmp_path, whole, after, noise, **options):
    """Runs cut off after so many batches end as the whole one does."""
    for batches in after:
        cut = tmp_path / f"cut-{batches}"
        with pytest.MonkeyPatch.context() as patch, stopped_after(patch, batches, saved=True):
            fit(folder, cut, noise, **options)
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


def found_labels(pairs, share, low, recall):
    matching = torch.zeros(pairs)
    matching[: round(recall * (1 - share) * pairs)] = 1.0
    estimate = Estimate(share, low, share + 0.01, 0.01, 0.5)
    return FirstLabels(
        estimate, torch.linspace(3, -9, pairs), torch.full((pairs,), -9.0), matching, torch.ones(pairs).bool()
    )


@pytest.mark.parametrize(
    ("share", "low", "recall", "better"),
    [
        (0.8, 0.7, 0.9, True),
        (0.7, 0.51, 0.9, True),
        (0.66, 0.65, 0.9, False),
        (0.8, 0.49, 0.9, False),
        (0.8, 0.7, 0.4, False),
        (0.995, 0.99, 1.0, False),
    ],
)
def test_they_are_taken_where_most_are_mismatched_and_they_tell_enough(share, low, recall, better):
    found = found_labels(1000, share, low, recall)
    assert found.recall == pytest.approx(recall, abs=0.01) and found.better is better
    method, memory = build_method("truepair"), CorrespondenceMemory(1000)
    method.prepare(memory)
    method.inputs = type("Inputs", (), {"first_labels": lambda self, **_: found})()
    method.start_epoch(EpochPosition(0, 1, method.stages(5, 4)), memory)
    assert memory.has_noted(SHARE) is better and method.mismatch_share(memory) == found.estimate
    expected = found.matching if better else torch.ones(1000)
    assert torch.equal(memory.read("credit"), expected)
    torch.testing.assert_close(memory.read("label"), torch.sigmoid(found.odds) if better else torch.ones(1000))


def test_where_linear_models_tell_nothing_there_is_no_estimate():
    """All pairs look mismatched then, however few are: the share is 1, and surely so."""
    blind = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    found = replace(
        found_labels(1000, 0.99, 0.9, 0.0), odds=torch.from_numpy(blind[0]), synthetic=torch.from_numpy(blind[1])
    )
    assert found.narrow and not found.tells and found.auroc == pytest.approx(0.5, abs=0.025)
    assert not replace(found, odds=found.odds - 1).tells  # worse than chance
    method, memory = asked(found)
    assert not any(map(memory.has_noted, (SHARE, LINEAR, FIRST_AUROC))) and method.mismatch_share(memory) is None
    assert torch.equal(memory.read("credit"), torch.ones(1000))


def test_few_pairs_and_copies_need_more_to_tell_anything():
    odds = torch.linspace(-1, 1, 1000)
    found = replace(found_labels(1000, 0.5, 0.4, 0.5), odds=odds + 0.06, synthetic=odds)
    assert found.tells and found.auroc == pytest.approx(0.53, abs=0.001)  # an error is 0.013
    assert not replace(found, copies=5.0).tells
    few = torch.linspace(-1, 1, 200)
    assert not replace(found_labels(200, 0.5, 0.4, 0.5), odds=few + 0.06, synthetic=few).tells


@pytest.mark.parametrize(
    ("low", "high", "recall", "narrow"),
    [(0.3, 0.6, 0.9, True), (0.3, 0.64, 0.9, False), (0.3, 0.5, 0.4, True), (0.0, 0.3, 1.0, True)],
)
def test_they_are_kept_to_be_asked_again_where_the_share_is_known_well(low, high, recall, narrow):
    found = replace(found_labels(1000, 0.4, 0.3, recall), estimate=Estimate(0.4, low, high, 0.01, 0.5))
    _, memory = asked(found)
    assert found.narrow is narrow and memory.has_noted(LINEAR) is narrow and not memory.has_noted(SHARE)
    assert memory.has_noted(FIRST_AUROC) is (narrow and recall > 0.5)
    assert torch.equal(memory.read("label"), torch.ones(1000)) and torch.equal(memory.read("credit"), torch.ones(1000))
    assert torch.equal(memory.read("odds"), torch.zeros(1000))


def seen_to_tell(memory, above):
    """A network that tells 1,000 pairs from synthetic mismatches in ½ + `above` of all comparisons: its odds."""
    seen = torch.full((1000,), 0.01)
    seen[: round(2000 * above)] = 0.02
    memory.write("seen_probability", None, seen)
    memory.write("synthetic", None, torch.full((1000,), 0.01))
    return torch.logit(seen)


@pytest.mark.parametrize(
    ("above", "taken"), [(0.0, True), (0.2, True), (0.3, False), (0.34, False), (0.36, True), (0.5, True)]
)
def test_they_count_where_the_network_tells_less_than_half_as_well_or_more_than_can_be(above, taken):
    """These linear odds always tell a given pair, 1; of 30 % mismatched pairs or more nobody can tell over 0.85."""
    found = replace(found_labels(1000, 0.4, 0.3, 0.9), odds=torch.linspace(3, -8, 1000))
    method, memory = asked(found)
    assert found.auroc == 1.0
    seen_odds = seen_to_tell(memory, above)
    scalars = method.start_epoch(EpochPosition(0, 3, method.stages(10, 8)), memory)
    assert scalars["network_auroc"] == pytest.approx(0.5 + above) and memory.has_noted(SHARE) is taken
    refined = 6  # epochs of the first stage, before which labels are refined
    torch.testing.assert_close(memory.read("odds"), (refined * found.odds + seen_odds) / 7 if taken else seen_odds)
    assert not taken or (memory.read("credit") > 0).sum() == 600
    again = method.start_epoch(EpochPosition(0, 4, method.stages(10, 8)), memory)
    assert ("network_auroc" in again) is not taken


@pytest.mark.parametrize("recall", [0.9, 0.4])
def test_they_count_from_the_epoch_on_in_which_mismatched_pairs_look_learned_by_heart(recall):
    found = found_labels(1000, 0.4, 0.3, recall)
    method, memory = asked(found)
    stages = method.stages(10, 8)
    before = seen_to_tell(memory, 0.3)
    method.start_epoch(EpochPosition(0, 3, stages), memory)
    assert not memory.has_noted(SHARE)
    after = seen_to_tell(memory, 0.4)
    method.start_epoch(EpochPosition(0, 4, stages), memory)
    assert memory.has_noted(SHARE)
    torch.testing.assert_close(memory.read("odds"), (6 * found.odds + before + after) / 8)
    method.start_epoch(EpochPosition(0, 5, stages), memory)
    torch.testing.assert_close(memory.read("odds"), (6 * found.odds + before + 2 * after) / 9)


def test_little_told_does_not_replace_what_a_slow_network_says():
    method, memory = asked(found_labels(1000, 0.4, 0.3, 0.4))
    seen_to_tell(memory, 0.0)
    method.start_epoch(EpochPosition(0, 3, method.stages(10, 8)), memory)
    assert not memory.has_noted(SHARE)


def test_after_the_first_stage_they_are_not_asked():
    method, memory = asked(found_labels(1000, 0.4, 0.3, 0.9))
    seen_to_tell(memory, 0.5)
    scalars = method.start_epoch(EpochPosition(1, 3, method.stages(10, 8)), memory)
    assert "network_auroc" not in scalars and not memory.has_noted(SHARE)


def test_pairs_that_cannot_be_judged_have_no_part_in_it():
    """What a network says of these, whose captions are of too many images, is no sign of anything."""
    found = replace(found_labels(1000, 0.4, 0.3, 0.9), judges=torch.arange(1000) >= 600)
    method, memory = asked(found)
    assert found.judged == 400
    seen_to_tell(memory, 0.3)  # that is of the first 600
    scalars = method.start_epoch(EpochPosition(0, 3, method.stages(10, 8)), memory)
    assert scalars["network_auroc"] == 0.5


def test_beside_labels_with_momentum_they_are_the_old_labels():
    found = found_labels(1000, 0.4, 0.3, 0.9)
    method, memory = asked(found, {"label_memory": "momentum", "momentum": 0.7})
    seen = torch.sigmoid(seen_to_tell(memory, 0.5))
    method.start_epoch(EpochPosition(0, 3, method.stages(10, 8)), memory)
    assert memory.has_noted(SHARE) and not memory.has_noted(SYNTHETIC)
    torch.testing.assert_close(memory.read("label"), 0.7 * torch.sigmoid(found.odds) + 0.3 * seen)


def asked(found, options=None):
    """The method after its first survey, in which the linear models have found this."""
    method, memory = build_method("truepair", options), CorrespondenceMemory(1000)
    method.prepare(memory)
    method.inputs = type("Inputs", (), {"first_labels": lambda self, **_: found})()
    method.start_epoch(EpochPosition(0, 1, method.stages(10, 8)), memory)
    return method, memory


def test_they_count_as_much_as_the_network_of_a_stage():
    method, memory = build_method("truepair"), CorrespondenceMemory(4)
    method.prepare(memory)
    memory.note(SHARE, torch.tensor(0.5))
    first, seen = torch.tensor([3.0, 1.0, -2.0, -8.0]), torch.tensor([0.9, 0.2, 0.5, 0.1])
    memory.write("odds", None, first)
    memory.write("seen_probability", None, seen)
    stages = method.stages(10, 8)
    refined = 6  # epochs of the first stage, of 8, before which labels are refined
    for epoch in (3, 4):
        method.start_epoch(EpochPosition(0, epoch, stages), memory)
    odds = [np.log(p / (1 - p)) for p in seen.tolist()]
    expected = [(refined * a + 2 * b) / (refined + 2) for a, b in zip(first.tolist(), odds, strict=True)]
    np.testing.assert_allclose(memory.read("odds").numpy(), expected, rtol=1e-5)
    assert memory.read("credit").tolist() == [1, 1, 0, 0]
    label = build_method("truepair", {"credit": "label"})  # the label is the credit all the same
    label.start_epoch(EpochPosition(1, 2, stages), memory)
    believed = [float(y) if y >= 0.1 else 0.0 for y in memory.read("label")]
    assert memory.read("credit").tolist() == pytest.approx(believed)


def test_the_uppermost_with_ties():
    label = torch.tensor([0.1, 0.9, 0.5, 0.5, 0.2])
    assert uppermost(label, 0.4).tolist() == [0, 1, 1, 1, 0]
    assert uppermost(label, 0.0).tolist() == [0] * 5 and uppermost(label, 1.0).tolist() == [1] * 5
    assert uppermost(label, 0.09).tolist() == [0] * 5


def of_blind_linear_models(tells):
    """After a first stage in which linear models held 800 of 1,000 pairs mismatched, and the network tells `tells`."""
    method, memory = asked(found_labels(1000, 0.8, 0.7, 0.9))
    assert memory.has_noted(SHARE)
    generator = torch.Generator().manual_seed(0)
    synthetic = torch.randn(1000, generator=generator, dtype=torch.float64)
    seen = torch.randn(1000, generator=generator, dtype=torch.float64) + 6 * (torch.arange(1000) < tells)
    memory.write("seen_probability", None, torch.sigmoid(seen).float())
    memory.write("synthetic", None, torch.sigmoid(synthetic).float())
    return method, memory


def test_labels_begin_anew_where_the_first_network_finds_far_fewer_pairs_mismatched():
    method, memory = of_blind_linear_models(tells=600)
    stages = method.stages(10, 8)
    scalars = method.start_epoch(EpochPosition(1, 1, stages), memory)
    assert scalars["network_share"] == pytest.approx(0.4, abs=0.1) and scalars["network_share_high"] < 0.7
    assert method.mismatch_share(memory).share == scalars["network_share"] and not memory.has_noted(SHARE)
    assert torch.equal(memory.read("label"), torch.ones(1000)) and torch.equal(memory.read("credit"), torch.ones(1000))
    for epoch in (3, 4):  # refined by the networks from here on alone
        seen = torch.full((1000,), 0.1 * epoch)
        memory.write("seen_probability", None, seen)
        method.start_epoch(EpochPosition(1, epoch, stages), memory)
    expected = (torch.logit(torch.tensor(0.3)) + torch.logit(torch.tensor(0.4))) / 2
    torch.testing.assert_close(memory.read("odds"), expected.expand(1000))
    assert "network_share" not in method.start_epoch(EpochPosition(2, 1, stages), memory)


@pytest.mark.parametrize("tells", [200, 300])
def test_labels_stay_where_the_first_network_does_not_contradict_linear_models(tells):
    method, memory = of_blind_linear_models(tells)
    before = memory.read("odds").clone()
    scalars = method.start_epoch(EpochPosition(1, 1, method.stages(10, 8)), memory)
    assert scalars["network_share_high"] >= 0.7 and memory.has_noted(SHARE)
    assert torch.equal(memory.read("odds"), before) and method.mismatch_share(memory).share == pytest.approx(0.8)


def test_a_network_that_may_know_pairs_by_heart_is_not_asked():
    """It began with labels as given: linear models came later."""
    method, memory = of_blind_linear_models(tells=600)
    memory.note(LINEAR, torch.zeros(1000))
    assert "network_share" not in method.start_epoch(EpochPosition(1, 1, method.stages(10, 8)), memory)
