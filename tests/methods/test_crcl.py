"""CRCL's labels against a plain loop over equation 11, and its pieces."""

import pytest
import torch

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.errors import InputError
from truepair.losses import active_complementary, complementary_contrastive
from truepair.methods import build_method
from truepair.methods.base import EpochPosition

PAIRS = 5


class GivenForward:
    """A batch whose similarity is given."""

    def __init__(self, similarity, ids):
        self.similarity = similarity
        self.batch = type("Batch", (), {"ids": ids})()


def positions(stages):
    return [EpochPosition(s, epoch, stages) for s, stage in enumerate(stages) for epoch in range(1, stage.epochs + 1)]


def similarity_of(step):
    generator = torch.Generator().manual_seed(step)
    return torch.rand(PAIRS, PAIRS, generator=generator) * 0.4 + 0.3 * torch.eye(PAIRS)


@pytest.mark.parametrize("freeze", [1, 2, 3])
def test_labels_follow_equation_11(freeze):
    method = build_method("crcl", {"pieces": (4, 5), "freeze_epochs": freeze, "momentum": 0.8})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    ids = torch.tensor([3, 0, 4, 1, 2])

    label, last_seen = [1.0] * PAIRS, None
    for step, position in enumerate(positions(method.stages(6, None))):
        method.start_epoch(position, memory)
        # The plain loop.
        if position.epoch > freeze:
            for pair in range(PAIRS):
                if position.stage == 0 and position.epoch == freeze + 1:
                    label[pair] = last_seen[pair]
                else:
                    label[pair] = 0.8 * label[pair] + 0.2 * last_seen[pair]
        assert memory.read("label").tolist() == pytest.approx(label, abs=1e-6), position

        method.batch_loss(GivenForward(similarity_of(step), ids), position, memory)
        seen = matching_probability(similarity_of(step), temperature=0.05).tolist()
        last_seen = {int(pair): probability for pair, probability in zip(ids, seen, strict=True)}


def test_stages_are_the_papers():
    stages = build_method("crcl").stages(32, 15)
    assert [stage.epochs for stage in stages] == [7, 7, 7, 32]
    assert [stage.decay_after for stage in stages] == [None, None, None, 15]
    assert [stage.epochs for stage in build_method("crcl", {"pieces": ()}).stages(10, 5)] == [10]
    assert [stage.epochs for stage in build_method("crcl").stages(22, 12)] == [4, 4, 4, 22]  # Table 5
    assert [stage.epochs for stage in build_method("crcl").stages(42, 20)] == [7, 7, 7, 42]
    assert [stage.epochs for stage in build_method("crcl", {"freeze_epochs": 4}).stages(22, 12)] == [18, 22]
    assert [stage.epochs for stage in build_method("crcl").stages(64, 2)] == [14, 14, 14, 64]
    assert [stage.epochs for stage in build_method("crcl").stages(10, 2)] == [8, 10]
    assert [stage.epochs for stage in build_method("crcl").stages(1, 1)] == [3, 1]
    with pytest.raises(InputError, match="more epochs than the 2"):
        build_method("crcl", {"pieces": ()}).stages(2, 1)


def test_only_the_label_in_the_loss_is_thresholded():
    """A label below ε counts as 0 in the loss, but is kept, so that the pair can come back (eq. 12)."""
    method = build_method("crcl")
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    labels = torch.tensor([0.05, 0.1, 0.0999, 1.0, 0.0])
    memory.write("label", None, labels)
    similarity, ids = similarity_of(0), torch.arange(PAIRS)
    result = method.batch_loss(GivenForward(similarity, ids), EpochPosition(0, 1, method.stages(5, None)), memory)
    expected = active_complementary(similarity, torch.tensor([0.0, 0.1, 0.0, 1.0, 0.0]))
    assert torch.equal(result.per_pair, expected)
    assert torch.equal(memory.read("label"), labels)
    assert method.taken_as_matched(memory).tolist() == [False, True, False, True, False]


def test_labels_of_pairs_not_seen_use_the_probability_last_seen():
    method = build_method("crcl", {"pieces": (), "freeze_epochs": 1})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    stages = method.stages(5, None)
    seen = torch.tensor([1, 3])
    method.batch_loss(GivenForward(similarity_of(0)[:2, :2], seen), EpochPosition(0, 1, stages), memory)
    method.start_epoch(EpochPosition(0, 2, stages), memory)
    assert memory.read("label", torch.tensor([0, 2, 4])).tolist() == [1.0, 1.0, 1.0]
    assert (memory.read("label", seen) < 1).all()


def test_without_self_refining_the_label_is_that_of_the_batch_at_hand_or_the_given_one():
    """Table 4 and Fig. 1: ŷ = p̂ of the current iteration, neither frozen nor thresholded; or 1. There is one piece."""
    ids, similarity = torch.arange(PAIRS), similarity_of(0)
    for labels, expected in (("current", matching_probability(similarity, temperature=0.05)), ("given", torch.ones(5))):
        method = build_method("crcl", {"labels": labels})
        assert [stage.epochs for stage in method.stages(32, 15)] == [32]
        memory = CorrespondenceMemory(PAIRS)
        method.prepare(memory)
        for epoch in (1, 4):
            position = EpochPosition(0, epoch, method.stages(32, 15))
            method.start_epoch(position, memory)
            found = method.batch_loss(GivenForward(similarity, ids), position, memory).per_pair
            assert torch.equal(found, active_complementary(similarity, expected))
            assert torch.equal(memory.read("label"), expected)
        assert torch.equal(memory.read("seen_similarity"), similarity.diagonal())


def test_rows_of_table_4_and_figure_4_are_parts_of_the_loss():
    ids, similarity = torch.arange(PAIRS), similarity_of(0)
    label = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0])
    negatives = active_complementary(similarity, label) - active_complementary(similarity, label, scale=0.0)

    def loss(**options):
        method = build_method("crcl", {"pieces": (), **options})
        memory = CorrespondenceMemory(PAIRS)
        method.prepare(memory)
        memory.write("label", None, label)
        return method.batch_loss(GivenForward(similarity, ids), EpochPosition(0, 1, method.stages(5, None)), memory)

    for options, expected in (
        ({"active_weight": 0.0}, negatives),
        ({"scale": 0.0}, active_complementary(similarity, label, scale=0.0)),
        ({"active_weight": 0.0, "exponent": 1.0}, active_complementary(similarity, 0 * label)),  # ŷ = 0: no L_d, q = 1
        ({"exponent": 0.0}, active_complementary(similarity, label, exponent=0.0)),
        (
            {"complementary": "log", "exponent": 0.0, "active_weight": 0.0},
            5 * complementary_contrastive(similarity, form="log"),
        ),
    ):
        torch.testing.assert_close(loss(**options).per_pair, expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"complementary": "log"}, "complementary is log.*needs an exponent of 0"),
        ({"complementary": "gce", "exponent": 1.0}, "complementary is gce.*needs an exponent of 0"),
        ({"labels": "current", "pieces": (7, 7)}, r"labels are current.*pieces are \(7, 7\)"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        build_method("crcl", options)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0},
        {"active_weight": -1.0},
        {"exponent": 1.5},
        {"scale": -1.0},
        {"momentum": 1.5},
        {"threshold": -0.1},
        {"freeze_epochs": 0},
        {"pieces": (7, 2)},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        build_method("crcl", options)


def test_unknown_options_and_methods_are_named():
    with pytest.raises(InputError, match="no option 'margin'.*momentum"):
        build_method("crcl", {"margin": 1})
    with pytest.raises(InputError, match="crlc.*triplet"):
        build_method("crlc")
