"""Cross entropy, MRL and ELR-CMR: which loss, what they remember, what they believe; and what all of them refuse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import truepair
from tests.methods.labelled import labelled_pairs
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.memory import GivenClasses
from truepair.engines.config import MLPConfig, SGRConfig
from truepair.errors import InputError
from truepair.losses.clustering import multimodal_contrast, robust_clustering, soft_cross_entropy
from truepair.methods import METHODS, build_method, learns_from_labels
from truepair.methods.base import EpochPosition
from truepair.methods.prototypes import Prototypes
from truepair.training.setup import Setup

LABELS = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0])
IDS = torch.tensor([6, 1, 3, 0])
SMALL = Setup(model=MLPConfig(width=8, hidden_width=8))


class Network:
    def __init__(self, seed=0):
        draw = torch.Generator().manual_seed(seed)
        self.images = normalize(torch.randn(4, 5, generator=draw), dim=1)
        self.texts = normalize(torch.randn(4, 5, generator=draw), dim=1)

    @property
    def similarity(self):
        return self.images @ self.texts.T


class GivenForward:
    """A batch of four pairs whose encodings are there already."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.networks = [Network(seed)]
        self.auxiliary = Prototypes(3, 5)
        self.batch = type("Batch", (), {"ids": IDS, "labels": LABELS[IDS]})()


def prepared(name, options=None):
    method = build_method(name, options)
    memory = CorrespondenceMemory(8, GivenClasses(LABELS, 3))
    method.prepare(memory)
    return method, memory


def cosines(forward):
    prototypes = normalize(forward.auxiliary.vectors, dim=1)
    return forward.networks[0].images @ prototypes.T, forward.networks[0].texts @ prototypes.T


def position(method, epoch=1, epochs=5):
    return EpochPosition(0, epoch, method.stages(epochs, None))


def test_cross_entropy_is_that_of_both_sides():
    method, memory = prepared("ce", {"temperature": 0.5})
    forward = GivenForward()
    found = method.batch_loss(forward, position(method), memory).per_pair
    expected = sum(
        torch.nn.functional.cross_entropy(side / 0.5, LABELS[IDS], reduction="none") for side in cosines(forward)
    )
    torch.testing.assert_close(found, expected)


def test_mrl_weighs_clustering_against_contrast():
    method, memory = prepared("mrl", {"temperature": 0.5, "clustering_weight": 0.6})
    forward = GivenForward()
    found = method.batch_loss(forward, position(method), memory).per_pair
    clustering = sum(robust_clustering(side / 0.5, LABELS[IDS]) for side in cosines(forward))
    contrast = multimodal_contrast(forward.networks[0].images, forward.networks[0].texts, temperature=0.5)
    torch.testing.assert_close(found, 0.6 * clustering + 0.4 * contrast)


def test_elr_keeps_running_targets_and_moves_its_balance():
    method, memory = prepared("elr-cmr", {"momentum": 0.75, "regularizer_weight": 2.0})
    early = torch.zeros(4, 3)
    for epoch, weight in ((1, 0.7), (3, 0.5), (5, 0.3)):
        forward = GivenForward(seed=epoch)
        found = method.batch_loss(forward, position(method, epoch), memory).per_pair
        sides = [side.softmax(dim=1) for side in cosines(forward)]
        early = 0.75 * early + 0.25 * (sides[0] + sides[1]) / 2
        one_hot = torch.nn.functional.one_hot(LABELS[IDS], 3).float()
        clustering = sum(soft_cross_entropy(side, one_hot) for side in cosines(forward))
        held = sum(torch.log(1 - (side * early).sum(dim=1)) for side in sides)
        contrast = multimodal_contrast(forward.networks[0].images, forward.networks[0].texts)
        torch.testing.assert_close(found, weight * (clustering + 2.0 * held) + (1 - weight) * contrast)
        torch.testing.assert_close(memory.read("early_targets", IDS), early)
    assert memory.read("early_targets", torch.tensor([2, 4, 5, 7])).sum() == 0


@pytest.mark.parametrize("name", ["ce", "mrl", "elr-cmr", "uot-rcl"])
def test_methods_believe_what_they_last_predicted(name):
    method, memory = prepared(name)
    forward = GivenForward()
    assert method.belief(memory).tolist() == [1.0] * 8  # nothing speaks against a label yet
    method.batch_loss(forward, position(method), memory)
    images, texts = cosines(forward)
    expected = ((images + texts) / 2 / 0.1).softmax(dim=1)
    torch.testing.assert_close(method.label_distribution(memory)[IDS], expected)
    torch.testing.assert_close(method.belief(memory)[IDS], expected.gather(1, LABELS[IDS][:, None])[:, 0])
    same = expected.argmax(dim=1) == LABELS[IDS]
    assert method.taken_as_matched(memory)[IDS].tolist() == same.tolist()
    assert method.taken_as_matched(memory)[[2, 4, 5, 7]].all()


def test_prototypes_are_shared_unit_vectors():
    prototypes = Prototypes(3, 5)
    torch.testing.assert_close(prototypes.vectors @ prototypes.vectors.T, torch.eye(3))
    with torch.no_grad():
        prototypes.vectors.mul_(7)
    torch.testing.assert_close(prototypes(normalize(prototypes.vectors, dim=1)).diagonal(), torch.ones(3))


def test_who_learns_from_labels():
    assert [name for name in METHODS if learns_from_labels(name)] == ["ce", "mrl", "elr-cmr", "uot-rcl"]
    assert all(build_method(name).learns_from_labels == learns_from_labels(name) for name in METHODS)


@pytest.mark.parametrize(("name", "right"), [("ce", 0.85), ("mrl", 0.45), ("elr-cmr", 0.85), ("uot-rcl", 0.8)])
def test_a_run_scores_by_map_and_keeps_the_labels_it_believes(name, right, tmp_path):
    from pyarrow import parquet

    train = labelled_pairs(80, wrong=0.25)
    run = truepair.fit(
        train,
        method=name,
        dev=labelled_pairs(24, seed=1),
        test=labelled_pairs(24, seed=2),
        out=tmp_path / "run",
        setup=SMALL,
        epochs=16,
        batch_size=16,
        learning_rate=0.02,
    )
    assert run.result["label_noise_rate"] == 0.25
    assert {"map_i2t", "map_t2i", "map"} <= run.result["test"].keys()
    assert run.result["test"]["map"] > 0.6
    assert run.result["labels"]["corrected_accuracy"] > right
    assert run.result["detection"]["auroc"] > 0.55
    scores = [line["dev"]["map"] for line in run.metrics]
    assert run.result["best_epoch"] == 1 + int(np.argmax(scores))
    kept = parquet.read_table(run.path / "pairs.parquet").to_pydict()
    assert kept["given_class"] == train.labels.tolist()
    assert kept["wrong_label"] == train.wrong_labels.tolist()
    assert kept["given_label"][0] == train.class_names[train.labels[0]]
    distribution = np.array(kept["label_distribution"])
    np.testing.assert_allclose(distribution.sum(axis=1), 1, atol=1e-5)
    assert kept["corrected_class"] == distribution.argmax(axis=1).tolist()
    np.testing.assert_allclose(kept["label_belief"], distribution[np.arange(80), train.labels], atol=1e-6)
    assert all(0 <= value <= 1 for value in kept["confidence"])


def without_labels(pairs):
    return replace(pairs, labels=None, true_labels=None)


@pytest.mark.parametrize(
    ("train", "dev", "model", "message"),
    [
        (without_labels(labelled_pairs(8)), None, SMALL.model, "--label"),
        (labelled_pairs(8), without_labels(labelled_pairs(8, name="devs")), SMALL.model, "devs.*--label"),
        (labelled_pairs(8), replace(labelled_pairs(8), class_names=("a", "b", "c", "d")), SMALL.model, "classes"),
        (replace(labelled_pairs(8), labels=np.zeros(8, np.int64), true_labels=None), None, SMALL.model, "one class"),
        (replace(labelled_pairs(8), texts=replace(labelled_pairs(8).texts, features=None)), None, SGRConfig(), "mlp"),
        (labelled_pairs(8), None, SGRConfig(), "--model mlp"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_any_work(train, dev, model, message, tmp_path):
    with pytest.raises(InputError, match=message):
        truepair.fit(train, method="ce", dev=dev, out=tmp_path / "run", setup=Setup(model=model), epochs=1)
    assert not (tmp_path / "run").exists()


def test_methods_for_pairs_train_on_text_vectors_too(tmp_path):
    train = labelled_pairs(40)
    run = truepair.fit(train, method="crcl", dev=labelled_pairs(16, seed=1), out=tmp_path / "r", setup=SMALL, epochs=2)
    assert run.result["dev"]["rsum"] > 0
    again = run.model
    with pytest.raises(InputError, match="vectors of width 5"):
        again.similarity(replace(train, texts=replace(train.texts, features=None)))
