"""Held-out first labels of our own method: where they are taken, asked again, and begun anew."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.mixture_proportion import Estimate, auroc_among
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.credits import uppermost, uppermost_of_each
from truepair.methods.truepair.first_labels import FirstLabels, share_by_network
from truepair.methods.truepair.method import FIRST_AUROC, JUDGED, LINEAR, SHARE, SYNTHETIC


def found_labels(pairs, share, low, recall):
    matching = torch.zeros(pairs)
    matching[: round(recall * (1 - share) * pairs)] = 1.0
    estimate = Estimate(share, low, share + 0.01, 0.01, 0.5)
    return FirstLabels(
        estimate, torch.linspace(3, -9, pairs), torch.full((pairs,), -9.0), matching, torch.ones(pairs).bool(), 1.0
    )


def scored(found, odds, synthetic):
    return replace(found, odds=odds, synthetic=synthetic, auroc=auroc_among(odds.numpy(), synthetic.numpy()))


@pytest.mark.parametrize(
    ("share", "low", "recall", "better"),
    [
        (0.8, 0.7, 0.9, True),
        (0.7, 0.51, 0.9, True),
        (0.66, 0.65, 0.9, False),
        (0.8, 0.49, 0.9, False),
        (0.8, 0.7, 0.65, True),
        (0.8, 0.7, 0.55, False),
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
    blind = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32))
    found = scored(found_labels(1000, 0.99, 0.9, 0.0), *blind)
    assert found.narrow and not found.tells and found.auroc == pytest.approx(0.5, abs=0.025)
    assert not scored(found, blind[0] - 1, blind[1]).tells  # worse than chance
    method, memory = asked(found)
    assert not any(map(memory.has_noted, (SHARE, LINEAR, FIRST_AUROC))) and method.mismatch_share(memory) is None
    assert torch.equal(memory.read("credit"), torch.ones(1000))


def test_few_pairs_and_copies_need_more_to_tell_anything():
    odds = torch.linspace(-1, 1, 1000)
    found = scored(found_labels(1000, 0.5, 0.4, 0.5), odds + 0.06, odds)
    assert found.tells and found.auroc == pytest.approx(0.53, abs=0.001)  # an error is 0.013
    assert not replace(found, copies=5.0).tells
    few = torch.linspace(-1, 1, 200)
    assert not scored(found_labels(200, 0.5, 0.4, 0.5), few + 0.06, few).tells


@pytest.mark.parametrize(
    ("low", "high", "recall", "narrow"),
    [(0.3, 0.6, 0.9, True), (0.3, 0.64, 0.9, False), (0.3, 0.5, 0.55, True), (0.0, 0.3, 1.0, True)],
)
def test_they_are_kept_to_be_asked_again_where_the_share_is_known_well(low, high, recall, narrow):
    found = replace(found_labels(1000, 0.4, 0.3, recall), estimate=Estimate(0.4, low, high, 0.01, 0.5))
    _, memory = asked(found)
    assert found.narrow is narrow and memory.has_noted(LINEAR) is narrow and not memory.has_noted(SHARE)
    assert memory.has_noted(FIRST_AUROC) is (narrow and recall > 0.6)
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
    memory.note(JUDGED, torch.ones(4, dtype=torch.bool))
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


def test_the_uppermost_of_the_judged_pairs_and_of_the_others():
    """Labels of pairs that linear models cannot judge are all low, and as many of these match."""
    label = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.03, 0.01, 0.02, 0.04])
    judged = torch.tensor([True] * 4 + [False] * 4)
    assert uppermost_of_each(label, judged, 0.5).tolist() == [1, 1, 0, 0, 1, 0, 0, 1]
    assert uppermost_of_each(label, judged.roll(1), 0.5).tolist() == [1, 1, 1, 0, 0, 0, 0, 1]
    assert uppermost_of_each(label, torch.ones(8, dtype=torch.bool), 0.5).tolist() == uppermost(label, 0.5).tolist()
    assert uppermost_of_each(label, torch.zeros(8, dtype=torch.bool), 0.0).tolist() == [0] * 8


def test_pairs_that_are_not_judged_are_believed_as_often_as_the_others():
    """After the epochs of the first labels, of whom none is believed; also where these count later."""
    for share, low in ((0.8, 0.7), (0.3, 0.2)):
        judged = torch.arange(1000) < 600
        found = replace(found_labels(1000, share, low, 0.9), judges=judged)
        method, memory = asked(found)
        assert found.better is (share == 0.8) and memory.has_noted(SHARE) is found.better
        seen_to_tell(memory, 1.0)
        low_ones = torch.linspace(1e-4, 0.5e-4, 400)
        memory.write("seen_probability", None, memory.read("seen_probability").masked_scatter(~judged, low_ones))
        method.start_epoch(EpochPosition(0, 3, method.stages(10, 8)), memory)
        assert memory.has_noted(SHARE)
        credit = memory.read("credit")
        assert credit[judged].mean() == pytest.approx(1 - share, abs=0.005)
        assert credit[~judged].mean() == pytest.approx(1 - share, abs=0.005)
        uppermost_there = round(400 * (1 - share))  # the first ones
        assert credit[600 : 600 + uppermost_there].all() and not credit[600 + uppermost_there :].any()


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


def test_the_network_is_asked_of_the_pairs_alone_that_linear_models_could_judge():
    """600 of 1,000 pairs stand out; without the 200 of a frequent caption, which look like mismatches, 600 of 800."""
    judged = torch.arange(1000) < 800
    method, memory = of_blind_linear_models(tells=600)
    memory.note(JUDGED, judged)
    scalars = method.start_epoch(EpochPosition(1, 1, method.stages(10, 8)), memory)
    assert scalars["network_share"] == pytest.approx(0.25, abs=0.07)
    among_all = share_by_network(memory, torch.ones(1000, dtype=torch.bool))
    assert among_all.share == pytest.approx(0.4, abs=0.1) and among_all.share > scalars["network_share_high"]


def test_a_network_that_may_know_pairs_by_heart_is_not_asked():
    """It began with labels as given: linear models came later."""
    method, memory = of_blind_linear_models(tells=600)
    memory.note(LINEAR, torch.zeros(1000))
    assert "network_share" not in method.start_epoch(EpochPosition(1, 1, method.stages(10, 8)), memory)
