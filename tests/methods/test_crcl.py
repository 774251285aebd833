"""CRCL's labels against a plain loop over equation 11, and its pieces."""

import pytest
import torch

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.errors import InputError
from truepair.losses import active_complementary
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


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0},
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
