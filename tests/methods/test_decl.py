"""DECL's labels and losses against plain loops, and what a noisy pair learns."""

import math

import pytest
import torch

from tests.losses.test_evidential import loop_evidential
from tests.losses.test_losses import loop_hinge
from tests.methods.test_ugncl import GivenForward, plain_background
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.errors import InputError
from truepair.losses import evidential
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage

PAIRS = 5
PAPER = {"evidence": "exp_tanh", "temperature": 0.1, "divergence": "sum", "hardness": "printed"}


def matrix(seed=0, leaf=False):
    """Three pairs match, two do not."""
    similarity = (
        0.4 * torch.rand(PAIRS, PAIRS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.2
    )
    similarity[range(3), range(3)] += 0.5
    return similarity.requires_grad_(leaf)


def position(epoch, step=0):
    return EpochPosition(0, epoch, (Stage(10),), step=step, steps=4, batch_size=PAIRS)


def prepared(**options):
    method, memory = build_method("decl", {"warm_up_epochs": 2, **options}), CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    return method, memory


IDS = torch.tensor([4, 0, 3, 1, 2])


def plain_evidence(similarity, paper):
    rows = similarity.tolist()
    if not paper:
        return plain_background(rows, 0.05, 0.25)
    return [[math.exp(cell / 0.1) for cell in row] for row in rows]


@pytest.mark.parametrize("paper", [True, False])
@pytest.mark.parametrize("epoch", [2, 3])
def test_labels_and_loss_are_those_of_plain_loops(paper, epoch):
    method, memory = prepared(**(PAPER if paper else {}))
    similarity = matrix()
    evidence = plain_evidence(similarity, paper)
    both = [[evidence[i][j] + evidence[j][i] for j in range(PAIRS)] for i in range(PAIRS)]
    label = [1.0] * PAIRS
    if epoch > 2:
        method.survey(GivenForward([similarity], IDS), position(epoch), memory)
        label = [float(max(range(PAIRS), key=row.__getitem__) == i) for i, row in enumerate(both)]
        assert 0 < sum(label) < PAIRS
    found = method.batch_loss(GivenForward([similarity], IDS), position(epoch), memory).per_pair
    assert memory.read("label", IDS).tolist() == label
    assert memory.read("share", IDS).tolist() == pytest.approx([row[i] / sum(row) for i, row in enumerate(both)])
    uncertainty = [PAIRS / (PAIRS + sum(row) / 2) for row in both]
    assert memory.read("uncertainty", IDS).tolist() == pytest.approx(uncertainty)
    alpha, target = torch.tensor(evidence, dtype=torch.float64) + 1, torch.tensor(label).diag().double()
    weight = 0.1 if paper else 0.1 / PAIRS
    opinion = [
        a + b
        for a, b in zip(loop_evidential(alpha, target, weight), loop_evidential(alpha.T, target, weight), strict=True)
    ]
    hinge = loop_hinge(similarity, 0.2, 4)  # B − 1, for μ is 5
    expected = [e + 0.8 * PAIRS * y * h for e, y, h in zip(opinion, label, hinge, strict=True)]
    assert found.tolist() == pytest.approx(expected, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("paper", [True, False])
@pytest.mark.parametrize("epoch", [2, 3])
def test_it_is_ugncl_whose_second_view_has_no_evidence(paper, epoch):
    """Where no pair is hard: the loss of the warm-up, all labels 1, and the evidential loss with some of 0."""
    label = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0] if epoch > 2 else [1.0] * PAIRS, dtype=torch.float64)
    method, memory = prepared(**(PAPER if paper else {}), hinge_weight=0.8 if epoch == 2 else 0.0)
    memory.write("label", IDS, label)
    similarity = matrix()
    here = position(epoch, step=1)
    found = method.batch_loss(GivenForward([similarity], IDS), here, memory).per_pair
    shared = {"evidence": "exp_tanh", "temperature": 0.1, "divergence": "sum"} if paper else {}
    other = build_method("ugncl", {"warm_up_epochs": 2, "least_negatives": 5, **shared})
    network = GivenForward([similarity, similarity], IDS).networks[0]
    one_view = [other.evidence(network)[0], torch.zeros_like(similarity)]
    same = other.opinion_loss(one_view, label) + other.opinion_loss([view.T for view in one_view], label)
    if epoch == 2:
        same = same + 0.8 * PAIRS * other.warm_up_ranking_loss(network, here)
    assert found.tolist() == pytest.approx(same.tolist(), rel=1e-12)


def test_the_gradient_is_that_of_the_value():
    method, memory = prepared(**PAPER)
    memory.write("label", None, torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]))

    def loss(similarity):
        return method.batch_loss(GivenForward([similarity], IDS), position(3), memory).per_pair

    assert torch.autograd.gradcheck(loss, matrix(3, leaf=True))


def test_pairs_in_another_order_have_the_same_labels_and_losses():
    order = torch.tensor([2, 4, 1, 0, 3])
    found = []
    for similarity, ids in ((matrix(), IDS), (matrix()[order][:, order], IDS[order])):
        method, memory = prepared()
        method.survey(GivenForward([similarity], ids), position(3), memory)
        loss = method.batch_loss(GivenForward([similarity], ids), position(3), memory).per_pair
        found.append((loss, memory.tensors()))
    torch.testing.assert_close(found[1][0], found[0][0][order], rtol=0, atol=1e-12)
    for name, values in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], values, rtol=0, atol=1e-6)


def test_a_noisy_pair_is_taught_to_give_no_evidence():
    evidence = torch.rand(1, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 5
    losses = [float(evidential(share * evidence + 1, torch.zeros(1, 6))) for share in (1.0, 0.5, 0.0)]
    assert losses[0] > losses[1] > losses[2]
    method, memory = prepared(hinge_weight=0.0, **PAPER)
    memory.write("label", None, torch.zeros(PAIRS))
    similarity = matrix(leaf=True)
    method.batch_loss(GivenForward([similarity], IDS), position(3), memory).per_pair.sum().backward()
    assert float((similarity.grad * torch.ones_like(similarity)).sum()) > 0  # less evidence all over


def test_negatives_fall_to_the_least():
    printed, own = build_method("decl", PAPER), build_method("decl")

    def at(method, step):
        place = EpochPosition(0, 1 + step // 1000, (Stage(50),), step=step % 1000, steps=1000, batch_size=128)
        return method.negatives(place, 128)

    assert [at(printed, step) for step in (0, 39, 4879, 4919, 30000)] == [127, 127, 6, 5, 5]
    assert [at(own, step) for step in (0, 4999, 5000, 30000)] == [127, 6, 5, 5]
    assert printed.negatives(EpochPosition(0, 1, (Stage(5),), batch_size=3), 3) == 2


def test_belief_and_division():
    method, memory = prepared()
    method.survey(GivenForward([matrix()], IDS), position(3), memory)
    assert torch.equal(method.belief(memory), memory.read("share"))
    clean = method.division(memory) == int(Part.CLEAN)
    assert torch.equal(clean.float(), memory.read("label")) and torch.equal(method.taken_as_matched(memory), clean)
    assert 0 < method.start_epoch(position(3), memory)["clean_share"] < 1
    assert method.start_epoch(position(2), memory) == {}


def test_contradictions_are_refused():
    with pytest.raises(InputError, match="background is 0.5.*evidence is exp_tanh"):
        build_method("decl", {"evidence": "exp_tanh", "background": 0.5})
    with pytest.raises(InputError, match="more epochs than the 5 of its warm-up"):
        build_method("decl").stages(5, None)
