"""What UOT-RCL says of the labels, and learns of them, by linear models that have not learned them."""

import json

import numpy as np
import pytest
import torch

import truepair
from tests.methods.labelled import labelled_pairs
from tests.training.test_resume import Stop, assert_same_run, stopped_after
from truepair.cli.train import summary
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.class_noise import ClassNoise
from truepair.correspondence.memory import GivenClasses
from truepair.data.label_noise import inject_label_noise
from truepair.engines.config import MLPConfig
from truepair.methods import build_method
from truepair.methods.input_vectors import InputVectors
from truepair.methods.uot_rcl.method import HELD_OUT, UNSEEN, WRONG
from truepair.training.pair_table import read_pair_table
from truepair.training.setup import Setup

NOISE = 0.4
WRONGS = 0.3  # of the labels at this noise and four classes


def fit(out, pairs=400, method=None, noise=NOISE, **more):
    options = {"epochs": 6, "batch_size": 40, "learning_rate": 0.01, "seed": 4, "progress": False}
    given = labelled_pairs(pairs)
    return truepair.fit(
        inject_label_noise(given, noise, seed=0) if noise else given,
        method=method or build_method("uot-rcl"),
        dev=labelled_pairs(24, seed=1),
        out=out,
        setup=Setup(model=MLPConfig(width=8, hidden_width=12)),
        **{**options, **more},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("held-out") / "run")


def test_the_share_of_wrong_labels_is_told(run):
    found = run.result["wrong_label_share"]
    assert found["share"] == pytest.approx(WRONGS, abs=3 * found["error"]) and found["error"] < 0.05
    assert run.metrics[0]["wrong_labels"] == pytest.approx(found["share"])
    assert "wrong_labels" not in run.metrics[1]
    assert "Share of labels that are wrong at random, by linear models" in summary(run.result)


def test_without_the_remainder_training_is_as_without_the_models_and_less_is_told_without(run, tmp_path):
    alone = fit(tmp_path / "alone", method=build_method("uot-rcl", {"held_out_weight": 0.0}))
    transported = fit(
        tmp_path / "transported", method=build_method("uot-rcl", {"remainder": "none", "relation_from": 0.0})
    )
    for name in ("loss", "dev"):
        assert [line[name] for line in alone.metrics] == [line[name] for line in transported.metrics]
    losses = [[line["loss"] for line in each.metrics] for each in (run, alone)]
    assert losses[0][:4] == losses[1][:4] and losses[0][4] != losses[1][4]  # a warm-up of four epochs
    assert "wrong_label_share" not in alone.result and "wrong_labels" not in alone.metrics[0]
    ours, theirs = (each.result["labels"]["corrected_accuracy"] for each in (transported, alone))
    assert 1 - WRONGS < theirs < ours


@pytest.mark.parametrize(("contradicted", "learned"), [(0.1, 1.0), (0.3, 0.5), (0.5, 0.0)])
def test_where_no_label_is_seen_to_be_wrong_the_rest_is_the_given_one_without_doubt(contradicted, learned):
    """As far as the warm-up contradicts no more than a fifth of the labels, and not at all from two fifths on."""
    labels = torch.tensor([0, 1, 2, 0])
    method = build_method("uot-rcl")
    memory = CorrespondenceMemory(4, GivenClasses(labels, 3))
    method.prepare(memory)
    plan = torch.tensor([[0.5, 0.25, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.1], [0.0, 0.0, 0.0]])
    memory.write("label_distribution", None, plan)
    memory.note("predictions_changed", torch.tensor(contradicted))
    memory.note(UNSEEN, torch.tensor(0.02))
    found = method.learned_labels(memory, torch.arange(4))
    for i in range(4):
        for k in range(3):
            rest = learned * (1 - float(plan[i].sum())) * (int(labels[i]) == k)
            assert float(found[i, k]) == pytest.approx(float(plan[i, k]) + rest, abs=1e-6)


def test_clean_labels_are_learned_wholly(tmp_path):
    whole, transported = (
        fit(tmp_path / remainder, 1500, noise=0.0, method=build_method("uot-rcl", {"remainder": remainder}))
        for remainder in ("held-out", "none")
    )
    assert "wrong_label_share" not in whole.result and "wrong_labels" not in whole.metrics[0]
    assert whole.metrics[4]["doubt"] == 0
    losses = [run.metrics[4]["label_loss"] for run in (transported, whole)]
    assert losses[0] < 0.8 * losses[1]  # of less than whole labels


def test_what_is_learned_sums_to_one_where_the_models_tell_something():
    """By a plain loop: the corrected label, and for what it lacks of a whole one what the models say."""
    plan = torch.tensor([[0.5, 0.25, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.1], [0.0, 0.0, 0.0]])
    said = torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0], [0.2, 0.7, 0.1]])
    ids = torch.tensor([3, 0, 2, 1])
    for remainder in ("held-out", "none"):
        method = build_method("uot-rcl", {"remainder": remainder})
        memory = CorrespondenceMemory(4, GivenClasses(torch.tensor([0, 1, 2, 0]), 3))
        method.prepare(memory)
        memory.write("label_distribution", None, plan)
        memory.write(HELD_OUT, None, said)
        assert torch.equal(method.learned_labels(memory, ids), plan[ids])  # they have told nothing yet
        memory.note(WRONG, torch.tensor([0.3, 0.01]))
        found = method.learned_labels(memory, ids)
        for row, i in enumerate(ids.tolist()):
            left = (1 - float(plan[i].sum())) if remainder == "held-out" else 0.0
            for k in range(3):
                assert float(found[row, k]) == pytest.approx(float(plan[i, k]) + left * float(said[i, k]), abs=1e-6)


def test_images_and_texts_are_matched_where_most_labels_are_wrong_or_nothing_can_be_told():
    method = build_method("uot-rcl")
    memory = CorrespondenceMemory(4, GivenClasses(torch.tensor([0, 1, 2, 0]), 3))
    method.prepare(memory)
    memory.note("predictions_changed", torch.tensor(0.3))  # half of full doubt
    assert method.relation_weight(memory) == pytest.approx(0.2)  # they have told nothing
    for drawn, weight in ((0.69, 0.0), (0.71, 0.2), (0.2, 0.0)):  # of three classes: a third of them stays right
        memory.note(WRONG, torch.tensor([drawn * 2 / 3, 0.01]))
        assert method.relation_weight(memory) == pytest.approx(weight)
    everywhere = build_method("uot-rcl", {"relation_from": 0.0})
    everywhere.prepare(CorrespondenceMemory(4, GivenClasses(torch.tensor([0, 1, 2, 0]), 3)))
    assert everywhere.relation_weight(memory) == pytest.approx(0.2)


def test_with_few_wrong_labels_training_is_that_without_the_relation_loss(run, tmp_path):
    without = fit(tmp_path / "without", method=build_method("uot-rcl", {"relation_weight": 0.0}))
    always = fit(tmp_path / "always", method=build_method("uot-rcl", {"relation_from": 0.0}))
    assert [line["loss"] for line in without.metrics] == [line["loss"] for line in run.metrics]
    assert "relation_loss" in always.metrics[-1] and "relation_loss" not in run.metrics[-1]


@pytest.mark.parametrize("batches", [1, 7, 55])
def test_a_run_cut_off_resumes_exactly(run, tmp_path, monkeypatch, batches):
    with stopped_after(monkeypatch, batches, saved=True):
        fit(tmp_path / "run")
    assert_same_run(fit(tmp_path / "run", resume=True).path, run.path)


def test_a_method_that_was_stopped_while_it_looked_begins_anew(run, tmp_path, monkeypatch):
    method, add, left = build_method("uot-rcl"), InputVectors.add, [True]

    def stopping(self, forward):
        add(self, forward)
        if left:
            left.clear()
            raise Stop

    monkeypatch.setattr(InputVectors, "add", stopping)
    with pytest.raises(Stop):
        fit(tmp_path / "run", method=method)
    assert_same_run(fit(tmp_path / "run", method=method, resume=True).path, run.path)


def test_of_few_pairs_nothing_is_told_and_the_corrected_labels_stand(tmp_path):
    few, alone = (
        fit(tmp_path / name, 199, build_method("uot-rcl", {"held_out_weight": weight}))
        for name, weight in (("few", 0.75), ("alone", 0.0))
    )
    assert "wrong_label_share" not in few.result and "wrong_labels" not in few.metrics[0]
    assert few.result["labels"] == alone.result["labels"]
    columns = ["label_distribution", "confidence"]
    assert read_pair_table(few.path / "pairs.parquet", columns).equals(
        read_pair_table(alone.path / "pairs.parquet", columns)
    )


def test_without_a_warm_up_the_first_survey_serves_both(tmp_path):
    method = build_method("uot-rcl", {"warm_up_epochs": 0})
    made = fit(tmp_path / "run", method=method, epochs=2)
    assert made.metrics[0]["wrong_labels"] > 0 and made.metrics[0]["confident_pairs"] > 0


@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_the_two_are_mixed_by_the_weight(weight):
    labels = torch.tensor([0, 1, 2, 0])
    method = build_method("uot-rcl", {"held_out_weight": weight})
    memory = CorrespondenceMemory(4, GivenClasses(labels, 3))
    method.prepare(memory)
    plan = torch.tensor([[0.5, 0.25, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.1], [0.0, 0.0, 0.0]])
    memory.write("label_distribution", None, plan)
    memory.note("predictions_changed", torch.tensor(0.4))
    said = torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0], [0.2, 0.7, 0.1]])
    memory.write(HELD_OUT, None, said)
    before = method.label_distribution(memory)
    assert method.label_beliefs(memory).wrong is None  # they have told nothing yet
    memory.note(WRONG, torch.tensor([0.3, 0.01]))
    found = method.label_distribution(memory)
    for i in range(4):
        for k in range(3):
            mixed = weight * float(said[i, k]) + (1 - weight) * float(before[i, k])
            assert float(found[i, k]) == pytest.approx(mixed, abs=1e-6)
    beliefs = method.label_beliefs(memory)
    torch.testing.assert_close(beliefs.confidence, found.amax(dim=1))
    assert (beliefs.wrong.share, beliefs.wrong.error) == (pytest.approx(0.3), pytest.approx(0.01))


def test_what_is_kept_is_what_the_models_say_of_the_vectors(tmp_path, monkeypatch):
    seen, of = [], ClassNoise.of

    def watched(sides, rows, labels, classes, *, seed, copies):
        seen.append((sides, rows, labels, classes))
        return of(sides, rows, labels, classes, seed=seed, copies=copies)

    monkeypatch.setattr(ClassNoise, "of", watched)
    made = fit(tmp_path / "run", method=build_method("uot-rcl", {"held_out_weight": 1.0}))
    ((sides, rows, labels, classes),) = seen
    pairs = inject_label_noise(labelled_pairs(400), NOISE, seed=0)
    assert np.array_equal(rows, pairs.image_index) and np.array_equal(labels, pairs.labels) and classes == 4
    assert [side.shape for side in sides] == [(400, 6), (400, 5)]
    told = read_pair_table(made.path / "pairs.parquet", ["label_distribution"])["label_distribution"].to_pylist()
    np.testing.assert_allclose(np.array(told), of(sides, rows, labels, 4, seed=0).posterior, atol=1e-6)
    assert json.loads((made.path / "config.json").read_text())["method"]["revision"] == 5
