"""Labels and credits of our own method: means over all epochs and networks, two groups, and what chance explains."""

import numpy as np
import pytest
import torch

from tests.methods.own.given import PAIRS, prepared
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import beyond_chance, upper_group
from truepair.methods import build_method
from truepair.methods.base import EpochPosition


def test_the_credit_of_a_pair_is_the_posterior_of_its_label_or_the_label():
    generator = torch.Generator().manual_seed(0)
    odds = torch.cat([torch.randn(60, generator=generator) - 5, torch.randn(140, generator=generator) + 2])
    label = torch.sigmoid(odds)
    for credit, expected in (("label", label * (label >= 0.1)), ("posterior", upper_group(label).float())):
        method, memory = build_method("truepair", {"credit": credit}), CorrespondenceMemory(200)
        method.prepare(memory)
        memory.write("label", None, label)
        method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
        found = memory.read("credit")
        believed = found > 0
        torch.testing.assert_close(found[believed], expected[believed])
        assert bool((expected[~believed] < 0.5).all())
        assert torch.equal(method.taken_as_matched(memory), believed)
    assert (believed[:60].float().mean() < 0.05) and (believed[60:].float().mean() > 0.95)
    memory.write("label", None, torch.full((200,), 0.3))  # no two groups: the label
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), torch.full((200,), 0.3))


def test_low_labels_count_as_far_as_chance_does_not_explain_them():
    """Where labels in no two groups leave next to nobody believed; in the first epochs all are."""
    generator = torch.Generator().manual_seed(0)
    method, memory = build_method("truepair"), CorrespondenceMemory(400)
    method.prepare(memory)
    memory.write("synthetic", None, torch.sigmoid(torch.randn(400, generator=generator) - 6))
    method.start_epoch(EpochPosition(0, 2, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), torch.ones(400))
    wrong, right = torch.randn(300, generator=generator) - 6, torch.randn(100, generator=generator) - 4
    label = torch.sigmoid(torch.cat([wrong, right]))
    assert upper_group(label) is None
    memory.write("label", None, label)
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    credit = memory.read("credit")
    assert torch.equal(credit, beyond_chance(label, memory.read("synthetic")))
    assert 20 < int((credit > 0).sum()) < 120
    assert float((credit[:300] > 0).float().mean()) < 0.15 < 0.3 < float((credit[300:] > 0).float().mean())
    more = torch.sigmoid(torch.logit(label) + 2.5)  # more than a twentieth is believed: the label, as ever
    assert upper_group(more) is None and 20 < int((more >= 0.1).sum()) < 200
    memory.write("label", None, more)
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), more.masked_fill(more < 0.1, 0.0))


def test_labels_are_compared_with_the_same_mean_of_synthetic_mismatches():
    """The last epoch's alone, of a network that begins anew, would be those of one that tells nothing yet."""
    generator = torch.Generator().manual_seed(0)
    method, memory = build_method("truepair", {"pieces": (4,)}), CorrespondenceMemory(400)
    method.prepare(memory)
    stages = method.stages(5, 4)
    right = torch.cat([torch.full((160,), -7.0), torch.full((240,), 2.0)])
    credits, made = [], []
    for stage, epoch in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3)):
        method.start_epoch(EpochPosition(stage, epoch, stages), memory)
        credits.append(memory.read("credit"))
        # Both are seen as they are at the end of the first stage, and as one by a network that has begun anew.
        told = 1.0 if stage == 0 else 0.05
        for field, centre in (("seen_probability", right), ("synthetic", torch.full((400,), -7.0))):
            odds = told * centre - 5 * (1 - told) * 0.1 + torch.randn(400, generator=generator)
            memory.write(field, None, torch.sigmoid(odds))
        made.append(torch.logit(memory.read("synthetic").double()))
        if epoch > 2 and stage == 0:
            assert bool((credits[-1][:160] == 0).all() and (credits[-1][160:] > 0).all())
    assert torch.equal(credits[4], credits[5]), "labels stand still, and so does what is believed of them"
    assert bool((credits[4][:160] == 0).all() and (credits[4][160:] > 0).all())
    kept = memory.noted("synthetic_odds").double()
    torch.testing.assert_close(kept, (made[1] + made[2] + made[5]) / 3, atol=1e-4, rtol=0)


@pytest.mark.parametrize("label_memory", ["mean", "momentum"])
def test_labels_remember_all_epochs_and_networks(label_memory):
    """Against a plain loop over the epochs of all stages; the first two of each leave the labels as they are."""
    generator = torch.Generator().manual_seed(0)
    method, memory, stages = prepared(label_memory=label_memory, pieces=(3, 4))
    expected, seen = torch.ones(PAIRS), []
    for stage, epochs in enumerate((3, 4, 5)):
        for epoch in range(1, epochs + 1):
            method.start_epoch(EpochPosition(stage, epoch, stages), memory)
            if epoch > 2:
                seen.append(memory.read("seen_probability").double().tolist())
                odds = [[np.log(p / (1 - p)) for p in line] for line in seen]
                mean = [1 / (1 + np.exp(-sum(column) / len(odds))) for column in zip(*odds, strict=True)]
                moving = seen[0]
                for line in seen[1:]:
                    moving = [0.8 * old + 0.2 * new for old, new in zip(moving, line, strict=True)]
                expected = torch.tensor(mean if label_memory == "mean" else moving, dtype=torch.float32)
            torch.testing.assert_close(memory.read("label"), expected)
            memory.write("seen_probability", None, torch.rand(PAIRS, generator=generator) * 0.98 + 0.01)
    assert len(seen) == 6
    memory.write("seen_probability", None, torch.tensor([0.0, 1.0, 0.5, 0.0, 1.0, 0.5]))  # no odds are infinite
    method.start_epoch(EpochPosition(2, 5, stages), memory)
    assert bool(torch.isfinite(memory.read("odds")).all())
