"""GSC's labels and losses against plain loops over its equations, alone and with two networks."""

import math

import numpy as np
import pytest
import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.correspondence.mixture import fit_mixture, released_posterior
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage

PAIRS = 40


class GivenNetwork:
    """A network whose similarities are given, row = image."""

    def __init__(self, similarity, images, texts):
        self.similarity, self.image_similarity, self.text_similarity = similarity, images, texts


class GivenForward:
    def __init__(self, networks, ids):
        self.networks = networks
        self.batch = type("Batch", (), {"ids": ids})()


def network(seed, leaf=False):
    """Two groups: the first 24 pairs agree across and within the modalities, the others do not."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.nn.functional.normalize(torch.randn(PAIRS, 6, generator=generator), dim=1)
    texts = torch.nn.functional.normalize(images + 0.1 * torch.randn(PAIRS, 6, generator=generator), dim=1)
    texts[24:] = texts[24:].roll(5, dims=0)
    made = [images @ texts.T, images @ images.T, texts @ texts.T]
    return GivenNetwork(*(part.requires_grad_(leaf) for part in made))


def position(epoch=1, step=0):
    return EpochPosition(0, epoch, (Stage(5),), step=step)


def plain_probability(similarity, row):
    def share(cells, own):
        return math.exp(own / 0.07) / sum(math.exp(cell / 0.07) for cell in cells)

    own = similarity[row][row]
    column = [line[row] for line in similarity]
    return (share(similarity[row], own) + share(column, own)) / 2


def plain_structure(images, texts, labels, row):
    a = [labels[j] * images[row][j] for j in range(PAIRS)]
    b = [labels[j] * texts[row][j] for j in range(PAIRS)]
    norm = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm


def plain_groups(values, shares):
    """Weight, mean and variance of two groups that hold a share of each value (an M-step, 5e-4 added as released)."""
    for share in shares:
        total = sum(share)
        mean = sum(s * v for s, v in zip(share, values, strict=True)) / total
        variance = sum(s * (v - mean) ** 2 for s, v in zip(share, values, strict=True)) / total + 5e-4
        yield total / len(values), mean, variance


def plain_shares(values, groups):
    """Share of each value in each group, and the mean log-likelihood (an E-step)."""
    shares, bound = ([], []), 0.0
    for value in values:
        densities = [w * math.exp(-((value - m) ** 2) / (2 * x)) / math.sqrt(2 * math.pi * x) for w, m, x in groups]
        bound += math.log(sum(densities)) / len(values)
        for share, density in zip(shares, densities, strict=True):
            share.append(density / sum(densities))
    return shares, bound


def plain_released(values):
    """The mixture of the released code: from two means until a step gains less than 0.01, or ten steps."""
    means = (min(values), max(values))
    for _ in range(50):
        near = [[float((abs(v - means[0]) <= abs(v - means[1])) == first) for v in values] for first in (True, False)]
        means = [mean for _, mean, _ in plain_groups(values, near)]
    groups, bound = list(plain_groups(values, near)), -math.inf
    for _ in range(10):
        before = bound
        shares, bound = plain_shares(values, groups)
        groups = list(plain_groups(values, shares))
        if abs(bound - before) < 1e-2:
            break
    return plain_shares(values, groups)[0][int(groups[1][1] > groups[0][1])]


def plain_bayes(values, mixture):
    """Eq. 4: p(k | s) = p(k) p(s | k) / p(s), of the group with the larger mean."""
    found = []
    for value in values:
        densities = [
            weight * math.exp(-((value - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
            for weight, mean, variance in zip(mixture.weights, mixture.means, mixture.variances, strict=True)
        ]
        found.append(densities[1] / sum(densities))
    return found


def plain_posterior(structure, fitted="likelihood"):
    low, high = min(structure), max(structure)
    scaled = [(value - low) / (high - low) for value in structure]
    if fitted == "released":
        return plain_released(scaled)
    mixture = fit_mixture(scaled)
    if fitted == "plain":
        return plain_bayes(scaled, mixture)
    return mixture.posterior(scaled) if mixture.two_components else [1.0] * PAIRS


@pytest.mark.parametrize(
    ("dual", "more"),
    [
        (False, {}),
        (True, {}),
        (True, {"exchange": "after_epoch"}),
        (False, {"mixture": "released"}),
        (False, {"mixture": "plain"}),
        (False, {"warm_up_epochs": 2}),
        (True, {"warm_up_epochs": 2}),
    ],
)
def test_labels_follow_equations_3_to_10(dual, more):
    method = build_method("gsc", {"co_train": dual, **more})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    ids = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(3))
    names = ["", "_b"] if dual else [""]
    across, within, label = ({name: [1.0] * PAIRS for name in names} for _ in range(3))
    for epoch in range(1, 4):
        networks = [network(10 * epoch + index) for index in range(len(names))]
        method.batch_loss(GivenForward(networks, ids), position(epoch), memory)
        if method.turns == 2:
            method.finish_turn(position(epoch), memory)
            method.batch_loss(GivenForward(networks, ids), position(epoch, step=1), memory)
        record = method.finish_epoch(position(epoch), memory)
        # The plain loops; each network's structure is weighed by its teacher's labels: those of the epoch before, or in
        # turn for the second network those that the first has just made.
        warm = more.get("warm_up_epochs", 0)  # in which no label changes before its last epoch is over
        before = label if method.turns == 2 and epoch > warm else {name: list(label[name]) for name in names}
        for name, teacher, given in zip(names, reversed(names), networks, strict=True):
            similarity, images, texts = (
                part.double().tolist() for part in (given.similarity, given.image_similarity, given.text_similarity)
            )
            labels = [before[teacher][int(pair)] for pair in ids]
            structure = [0.0] * PAIRS
            for row, pair in enumerate(ids.tolist()):
                structure[pair] = plain_structure(images, texts, labels, row)
            posterior = plain_posterior(structure, more.get("mixture", "likelihood"))
            if epoch < warm:
                continue
            for row, pair in enumerate(ids.tolist()):
                across[name][pair] = 0.7 * plain_probability(similarity, row) + 0.3 * across[name][pair]
                within[name][pair] = 0.7 * posterior[pair] + 0.3 * within[name][pair]
                label[name][pair] = min(across[name][pair], within[name][pair])
            assert memory.read("cross_modal" + name).tolist() == pytest.approx(across[name], abs=1e-5)
            assert memory.read("intra_modal" + name).tolist() == pytest.approx(within[name], abs=1e-4)
            assert memory.read("label" + name).tolist() == pytest.approx(label[name], abs=1e-4)
        if "mixture" not in more:
            assert record["mixture_two_components" + names[-1]] == 1.0
    mean = torch.tensor([label[name] for name in names]).mean(dim=0)
    assert method.belief(memory).tolist() == pytest.approx(mean.tolist(), abs=1e-4)
    found = method.belief(memory)
    assert found[ids[:24]].min() > found[ids[24:]].max()


def test_a_warm_up_that_never_ends_is_refused():
    with pytest.raises(InputError, match="GSC needs more epochs than the 5 of its warm-up to refine labels, found 5"):
        build_method("gsc", {"warm_up_epochs": 5}).stages(5, None)
    assert build_method("gsc", {"warm_up_epochs": 5}).stages(6, None) == (Stage(6),)


def test_in_turn_only_the_network_whose_turn_it_is_learns():
    method = build_method("gsc", {"co_train": True})
    assert method.turns == 2
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    ids = torch.arange(PAIRS)
    for turn in (0, 1):
        networks = [network(1, leaf=True), network(2, leaf=True)]
        method.batch_loss(GivenForward(networks, ids), position(step=turn), memory).per_pair.mean().backward()
        assert [given.similarity.grad is None for given in networks] == [turn == 1, turn == 0]


@pytest.mark.parametrize("exchange", ["in_turn", "after_epoch"])
def test_one_network_has_none_to_take_turns_with(exchange):
    method = build_method("gsc", {"exchange": exchange})
    assert (method.networks, method.turns, method.learning(position())) == (1, 1, (0,))


def test_each_network_learns_from_the_other_ones_labels_and_as_if_alone():
    method, alone = build_method("gsc", {"co_train": True, "exchange": "after_epoch"}), build_method("gsc")
    ids = torch.arange(PAIRS)
    labels = torch.linspace(0, 1, PAIRS), torch.linspace(1, 0, PAIRS)
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    for suffix, label in zip(("", "_b"), labels, strict=True):
        memory.write("label" + suffix, None, label)
    networks = [network(1, leaf=True), network(2, leaf=True)]
    method.batch_loss(GivenForward(networks, ids), position(), memory).per_pair.mean().backward()
    for index, label in enumerate(reversed(labels)):
        single = network(index + 1, leaf=True)
        own = CorrespondenceMemory(PAIRS)
        alone.prepare(own)
        own.write("label", None, label)
        alone.batch_loss(GivenForward([single], ids), position(), own).per_pair.mean().backward()
        for part in ("similarity", "image_similarity", "text_similarity"):
            assert torch.allclose(getattr(networks[index], part).grad, getattr(single, part).grad)


def test_momentum_has_its_fixed_point():
    """Indicators that stay the same make labels that stay the same."""
    method = build_method("gsc", {"cross_modal_momentum": 1.0, "intra_modal_momentum": 1.0})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    forward = GivenForward([network(4)], torch.arange(PAIRS))
    for epoch in (1, 2, 3, 4):
        method.batch_loss(forward, position(epoch), memory)
        method.finish_epoch(position(epoch), memory)
    before = memory.read("cross_modal")
    smoothing = build_method("gsc")
    smoothing.batch_loss(forward, position(5), memory)
    smoothing.finish_epoch(position(5), memory)
    assert torch.allclose(memory.read("cross_modal"), before, atol=1e-6)


def test_similarities_without_two_groups_leave_the_decision_to_the_other_indicator(caplog):
    method = build_method("gsc")
    memory = CorrespondenceMemory(2000)
    method.prepare(memory)
    generator = torch.Generator().manual_seed(0)
    memory.write("seen_structure", None, torch.randn(2000, generator=generator))
    memory.write("seen_probability", None, torch.rand(2000, generator=generator))
    record = method.finish_epoch(position(), memory)
    assert record["mixture_two_components"] == 0.0
    assert "no two groups" in caplog.text
    assert torch.equal(memory.read("intra_modal"), torch.ones(2000))
    assert torch.allclose(memory.read("label"), 0.7 * memory.read("seen_probability") + 0.3)


def test_the_released_fit_stops_early_nearer_to_the_two_means():
    generator = torch.Generator().manual_seed(1)
    groups = (0.35 + 0.12 * torch.randn(400, generator=generator), 0.6 + 0.1 * torch.randn(600, generator=generator))
    values = torch.cat(groups).double().clamp(0, 1).tolist()
    found = released_posterior(np.array(values))
    assert found.tolist() == pytest.approx(plain_released(values), abs=1e-9)
    assert released_posterior(np.ones(5)).tolist() == [1.0] * 5


@pytest.mark.parametrize("value", [0.3, -1.0])
def test_equal_similarities_are_no_ground_for_doubt(value):
    method = build_method("gsc")
    memory = CorrespondenceMemory(30)
    method.prepare(memory)
    memory.write("seen_structure", None, torch.full((30,), value))
    method.finish_epoch(position(), memory)
    assert torch.equal(memory.read("intra_modal"), torch.ones(30))
    assert (method.division(memory) == Part.CLEAN).all()


def test_labels_that_are_all_zero_make_a_loss_of_zero_and_no_nan():
    method = build_method("gsc")
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    memory.write("label", None, torch.zeros(PAIRS))
    given = network(5, leaf=True)
    loss = method.batch_loss(GivenForward([given], torch.arange(PAIRS)), position(), memory).per_pair
    assert torch.equal(loss, torch.zeros(PAIRS))
    loss.mean().backward()
    assert torch.equal(given.similarity.grad, torch.zeros(PAIRS, PAIRS))
    method.finish_epoch(position(), memory)
    assert bool(torch.isfinite(memory.read("label")).all())


def test_as_printed_one_group_is_taken_for_two_and_the_wider_one_wins_on_both_sides():
    """What eq. 4 says by itself, and why it is not the default."""
    method = build_method("gsc", {"mixture": "plain"})
    memory = CorrespondenceMemory(2000)
    method.prepare(memory)
    structure = torch.randn(2000, generator=torch.Generator().manual_seed(0)).abs().square()  # skewed to the right
    memory.write("seen_structure", None, -structure)
    method.finish_epoch(position(), memory)
    scaled = 1 - (structure - structure.min()) / (structure.max() - structure.min())
    expected = plain_bayes(scaled.double().tolist(), fit_mixture(scaled.double().numpy()))
    found = (memory.read("intra_modal") - 0.3) / 0.7
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    assert found.min() < 0.01 and found[scaled.argmax()] < found.max()
