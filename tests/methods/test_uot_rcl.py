"""UOT-RCL: what a survey collects, how labels are corrected before an epoch, and the two losses of a batch."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize, one_hot

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.class_costs import corrected_labels, label_cost
from truepair.correspondence.confident import confident_pairs
from truepair.correspondence.memory import GivenClasses
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.prototypes import Prototypes
from truepair.transport import sinkhorn

COUNT, CLASSES, WIDTH = 24, 3, 6
LABELS = torch.arange(COUNT) % CLASSES
BATCHES = torch.randperm(COUNT, generator=torch.Generator().manual_seed(3)).split(8)


def unit(*shape, seed):
    return normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=1)


IMAGES, TEXTS = unit(COUNT, WIDTH, seed=0), unit(COUNT, WIDTH, seed=1)


class Network:
    def __init__(self, ids):
        self.images, self.texts = IMAGES[ids].clone(), TEXTS[ids].clone()
        self.similarity = self.images @ self.texts.T


class GivenForward:
    """A batch whose encodings are there already."""

    def __init__(self, ids):
        torch.manual_seed(0)
        self.networks = [Network(ids)]
        self.auxiliary = Prototypes(CLASSES, WIDTH)
        self.batch = type("Batch", (), {"ids": ids, "labels": LABELS[ids]})()


def prepared(**options):
    method = build_method("uot-rcl", {"warm_up_epochs": 2, **options})
    memory = CorrespondenceMemory(COUNT, GivenClasses(LABELS, CLASSES))
    method.prepare(memory)
    return method, memory


def position(method, epoch, epochs=6):
    return EpochPosition(0, epoch, method.stages(epochs, None))


def corrected(epoch=3, **options):
    """A method after the correction before an epoch, with its memory and what it logged."""
    method, memory = prepared(**options)
    with torch.no_grad():
        for ids in BATCHES:
            method.survey(GivenForward(ids), position(method, epoch), memory)
    return method, memory, method.start_epoch(position(method, epoch), memory)


def cosines():
    prototypes = normalize(GivenForward(BATCHES[0]).auxiliary.vectors.detach(), dim=1)
    return IMAGES @ prototypes.T, TEXTS @ prototypes.T


def test_the_warm_up_is_cross_entropy_with_the_given_labels():
    method, memory = prepared()
    forward = GivenForward(BATCHES[0])
    assert not method.surveys(position(method, 2))
    assert method.start_epoch(position(method, 2), memory) == {}
    found = method.batch_loss(forward, position(method, 2), memory).per_pair
    expected = sum(
        torch.nn.functional.cross_entropy(side[BATCHES[0]], LABELS[BATCHES[0]], reduction="none") for side in cosines()
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("consistency", ["none", "printed"])
def test_labels_are_corrected_from_all_pairs_whatever_the_batches(consistency):
    options = {"momentum": 0.75, "neighbours": 4, "per_class": 2, "epsilon": 0.2, "class_prior": "uniform"}
    _, memory, scalars = corrected(**options, consistency=consistency)
    images, texts = cosines()
    targets = 0.75 * one_hot(LABELS, CLASSES) + 0.25 * one_hot((images + texts).argmax(dim=1), CLASSES)
    confident = confident_pairs(images.softmax(dim=1), texts.softmax(dim=1), per_class=2)
    asked = confident if consistency == "printed" else None
    cost = label_cost(IMAGES, TEXTS, targets, asked, neighbours=4)
    mass = method_mass(3, contradicted=scalars["predictions_changed"])
    expected = corrected_labels(cost, torch.ones(CLASSES), mass=mass, epsilon=0.2)
    torch.testing.assert_close(memory.read("targets"), targets)
    torch.testing.assert_close(memory.read("label_distribution"), expected, atol=1e-5, rtol=1e-4)
    assert memory.read("confident").nonzero()[:, 0].tolist() == confident.tolist()
    torch.testing.assert_close(memory.noted("confident_images"), IMAGES[confident])
    torch.testing.assert_close(memory.noted("confident_texts"), TEXTS[confident])
    assert float(memory.read("label_distribution").sum()) == pytest.approx(COUNT * mass, rel=1e-5)
    assert scalars["transported_mass"] == pytest.approx(mass, abs=1e-6)


def test_the_printed_constraint_lets_more_than_the_share_be_transported():
    options = {"momentum": 0.75, "neighbours": 4, "first_mass": 0.1, "class_prior": "uniform"}
    _, exact, _ = corrected(**options)
    _, memory, scalars = corrected(**options, mass_constraint="printed")
    moved = float(memory.read("label_distribution").sum()) / COUNT
    assert float(exact.read("label_distribution").sum()) / COUNT < moved == pytest.approx(scalars["transported_mass"])


def method_mass(epoch, contradicted=1.0, **options):
    method, memory = prepared(**options)
    memory.note("predictions_changed", torch.tensor(contradicted))
    return method.mass(position(method, epoch), memory)


def test_the_transported_share_grows_linearly_to_the_last_epoch():
    options = {"first_mass": 0.2, "last_mass": 0.8, "warm_up_epochs": 2}
    assert [round(method_mass(epoch, **options), 6) for epoch in (3, 4, 5, 6)] == [0.2, 0.4, 0.6, 0.8]
    one, memory = build_method("uot-rcl", options), CorrespondenceMemory(COUNT)
    memory.note("predictions_changed", torch.tensor(1.0))
    assert one.mass(EpochPosition(0, 3, one.stages(3, None)), memory) == 0.2


@pytest.mark.parametrize(
    ("contradicted", "doubt"), [(0.0, 0.0), (0.1, 0.0), (0.2, 0.5), (0.25, 0.75), (0.3, 1.0), (1.0, 1.0)]
)
def test_labels_are_doubted_as_far_as_the_warm_up_contradicts_them(contradicted, doubt):
    method, memory = prepared(doubt_from=0.1, doubt_to=0.3, last_mass=0.6)
    memory.note("predictions_changed", torch.tensor(contradicted))
    assert method.doubt(memory) == pytest.approx(doubt, abs=1e-6)
    last = position(method, 6)
    assert method.mass(last, memory) == pytest.approx(1 - 0.4 * doubt, abs=1e-6)


def test_one_threshold_of_doubt_is_a_step_and_none_is_full_doubt():
    for contradicted, doubt in ((0.29, 0.0), (0.3, 1.0)):
        method, memory = prepared(doubt_from=0.3, doubt_to=0.3)
        memory.note("predictions_changed", torch.tensor(contradicted, dtype=torch.float64))
        assert method.doubt(memory) == doubt
    method, memory = prepared(doubt_from=0.0, doubt_to=0.0)
    memory.note("predictions_changed", torch.tensor(0.0))
    assert method.doubt(memory) == 1.0


def test_doubt_is_settled_by_the_first_epoch_after_the_warm_up():
    method, memory, first = corrected()
    memory.note("confident_images", IMAGES[:1])
    for ids in BATCHES:
        method.survey(GivenForward(ids), position(method, 4), memory)
    method.bank.predicted[:] = LABELS  # nothing is contradicted any more
    later = method.start_epoch(position(method, 4), memory)
    assert first["predictions_changed"] > 0 and later["predictions_changed"] == 0
    assert later["doubt"] == first["doubt"]


def test_half_a_percent_of_the_pairs_votes_and_never_fewer_than_two():
    method, memory, _ = corrected(class_prior="given")
    cost = label_cost(IMAGES, TEXTS, memory.read("targets"), neighbours=2)
    mass = method.mass(position(method, 3), memory)
    plan = corrected_labels(cost, torch.ones(CLASSES), mass=mass, epsilon=method.config.epsilon)
    torch.testing.assert_close(memory.read("label_distribution"), plan, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("prior", ["uniform", "given", "predicted"])
def test_no_class_gets_more_than_its_share(prior):
    skewed = torch.tensor([0] * 12 + [1] * 8 + [2] * 4)
    method = build_method("uot-rcl", {"class_prior": prior, "first_mass": 1.0, "last_mass": 1.0, "warm_up_epochs": 2})
    memory = CorrespondenceMemory(COUNT, GivenClasses(skewed, CLASSES))
    method.prepare(memory)
    for ids in BATCHES:
        method.survey(GivenForward(ids), position(method, 3), memory)
    method.start_epoch(position(method, 3), memory)
    sums = memory.read("label_distribution").sum(dim=0)
    images, texts = cosines()
    predicted = torch.bincount((images + texts).argmax(dim=1), minlength=CLASSES)
    expected = {
        "uniform": torch.tensor([8.0, 8.0, 8.0]),
        "given": torch.tensor([12.0, 8.0, 4.0]),
        "predicted": (predicted + memory.read("targets").sum(dim=0)) / 2,
    }
    torch.testing.assert_close(sums, expected[prior], atol=1e-3, rtol=0)


def test_predicted_class_sizes_are_those_of_the_first_correction():
    """Whatever is predicted later: otherwise large classes grow with every correction."""
    method, memory, _ = corrected(class_prior="predicted", first_mass=1.0, last_mass=1.0)
    sizes = memory.read("label_distribution").sum(dim=0)
    for ids in BATCHES:
        method.survey(GivenForward(ids), position(method, 4), memory)
    method.bank.predicted[:] = 0
    method.start_epoch(position(method, 4), memory)
    torch.testing.assert_close(memory.read("label_distribution").sum(dim=0), sizes, atol=1e-3, rtol=0)


def test_a_batch_learns_the_corrected_labels_and_the_matches():
    options = {"relation_weight": 0.5, "match_temperature": 0.5, "relation_temperature": 0.7, "pair_weight": 0.25}
    method, memory, _ = corrected(relation_epsilon=0.1, **options)
    ids = BATCHES[1]
    result = method.batch_loss(GivenForward(ids), position(method, 3), memory)
    plan, found = memory.read("label_distribution", ids), torch.zeros(8)
    for side in cosines():
        found -= (plan * side[ids].log_softmax(dim=1)).sum(dim=1)
    shape = [relation_rows(side[ids], memory.noted(name), 0.7) for side, name in NOTED]
    cost = torch.tensor([[divergence(a, b) for b in shape[1]] for a in shape[0]])
    share = torch.full((8,), 1 / 8)
    match = sinkhorn(cost, share, share, epsilon=0.1 * float(cost.max() - cost.min()))
    match = 0.75 * match + 0.25 * torch.eye(8) / 8
    similarity = IMAGES[ids] @ TEXTS[ids].T
    rows, columns = (similarity / 0.5).log_softmax(dim=1), (similarity / 0.5).log_softmax(dim=0)
    matched = [
        -float((match[i] / match[i].sum() * rows[i]).sum() + (match[:, i] / match[:, i].sum() * columns[:, i]).sum())
        for i in range(8)
    ]
    torch.testing.assert_close(result.per_pair, found + 0.5 * torch.tensor(matched), atol=1e-4, rtol=1e-4)
    assert result.scalars["relation_loss"] == pytest.approx(sum(matched) / 8, abs=1e-4)


NOTED = ((IMAGES, "confident_images"), (TEXTS, "confident_texts"))


def relation_rows(side, confident, temperature):
    return (-(side @ confident.T) / temperature).softmax(dim=1)


def divergence(p, q):
    middle = (p + q) / 2
    return float(((p * (p / middle).log()).sum() + (q * (q / middle).log()).sum()) / 2)


def test_ablations_leave_their_part_out():
    ids = BATCHES[0]
    method, memory, _ = corrected(keep_labels=True, relation_weight=0.0)
    found = method.batch_loss(GivenForward(ids), position(method, 3), memory)
    expected = sum(torch.nn.functional.cross_entropy(side[ids], LABELS[ids], reduction="none") for side in cosines())
    torch.testing.assert_close(found.per_pair, expected)
    assert "relation_loss" not in found.scalars
    drawn = [corrected(epoch, confident="random", per_class=2)[1].read("confident") for epoch in (3, 3, 4)]
    assert drawn[0].sum() == 6
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_random_confident_set_is_another_with_another_seed():
    method, memory, _ = corrected(confident="random", per_class=2)
    sets = []
    for seed in (0, 5, 5):
        with torch.no_grad():
            for ids in BATCHES:
                method.survey(GivenForward(ids), position(method, 3), memory)
        method.start_epoch(replace(position(method, 3), seed=seed), memory)
        sets.append(memory.read("confident"))
    assert not torch.equal(sets[0], sets[1]) and torch.equal(sets[1], sets[2])


def test_what_is_not_transported_is_the_given_label_as_far_as_such_labels_are_confirmed():
    method, memory, scalars = corrected(doubt_from=0.0, doubt_to=0.0, first_mass=0.5)
    confirmed, plan = 1 - scalars["predictions_changed"], memory.read("label_distribution")
    assert 0 < confirmed < 1
    plan[3] = 0.0
    memory.write("label_distribution", None, plan)
    distribution = method.label_distribution(memory)
    torch.testing.assert_close(distribution.sum(dim=1), torch.ones(COUNT))
    for i in range(COUNT):
        for k in range(CLASSES):
            given, moved = float(LABELS[i] == k), float(plan[i].sum())
            went = given if i == 3 else float(plan[i, k]) / moved
            rest = (1 - moved) * (confirmed * given + (1 - confirmed) * went)
            assert float(distribution[i, k]) == pytest.approx(float(plan[i, k]) + rest, abs=1e-5)
    torch.testing.assert_close(method.confidence(memory), plan.sum(dim=1))
    assert method.belief(memory).min() >= 0


def test_a_second_survey_starts_afresh():
    method, memory, _ = corrected()
    assert method.bank is None
    once = memory.read("label_distribution")
    for ids in BATCHES:
        method.survey(GivenForward(ids), position(method, 3), memory)
    memory.write("targets", None, one_hot(LABELS, CLASSES).float())
    method.start_epoch(position(method, 3), memory)
    torch.testing.assert_close(memory.read("label_distribution"), once)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_mass": 0.0}, "first_mass is 0.0"),
        ({"last_mass": 1.2}, "last_mass is 1.2"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"neighbours": 0}, "at least 1"),
        ({"per_class": 0}, "at least 1"),
        ({"momentum": -0.1}, "momentum"),
        ({"class_prior": "flat"}, "given, uniform"),
        ({"pair_weight": -1.0}, "pair_weight"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        build_method("uot-rcl", options)


def test_a_warm_up_as_long_as_the_training_is_refused():
    with pytest.raises(InputError, match="more epochs"):
        build_method("uot-rcl").stages(4, None)
