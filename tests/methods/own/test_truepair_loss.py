"""The loss of our own method: its parts, how far a pair pulls, and that the order of the pairs does not matter."""

import numpy as np
import pytest
import torch

from tests.methods.own.given import CREDIT, IDS, LAST, PAIRS, GivenForward, prepared, similarity_of
from truepair.correspondence import CorrespondenceMemory
from truepair.losses import active_complementary, batch_distillation
from truepair.methods import build_method
from truepair.methods.base import EpochPosition


def test_parts_are_parts_of_the_loss():
    similarity, taught = similarity_of(0), similarity_of(1)
    alone = active_complementary(similarity, CREDIT[IDS])
    disbelieved = CREDIT[IDS] == 0

    def loss(**options):
        method, memory, stages = prepared(CREDIT, **options)
        return method.batch_loss(GivenForward(similarity, taught, IDS), EpochPosition(LAST, 1, stages), memory).per_pair

    kept = batch_distillation(similarity, 2 * taught)
    removed = batch_distillation(similarity, 2 * taught, left_out=disbelieved)
    torch.testing.assert_close(loss(), alone + 3 * removed)
    torch.testing.assert_close(loss(own_cell="kept"), alone + 3 * kept)
    torch.testing.assert_close(loss(own_cell="unused"), alone * ~disbelieved + 3 * removed)
    torch.testing.assert_close(loss(own_cell="kept", taught="disbelieved"), alone + 3 * kept * disbelieved)
    torch.testing.assert_close(
        loss(own_cell="kept", target_temperature=0.1),
        alone + 3 * batch_distillation(similarity, 2 * taught, target_temperature=0.1),
    )
    assert torch.equal(loss(distillation=0.0), alone)
    torch.testing.assert_close(loss(scale=0.0), active_complementary(similarity, CREDIT[IDS], scale=0.0) + 3 * removed)


def test_what_the_teacher_says_of_a_disbelieved_pair_itself_does_not_count():
    """Neither its target nor, through the distillation, its own similarity; the complementary part does use that,
    unless the whole loss of the last stage is to be without it.
    """
    similarity, taught = similarity_of(0).requires_grad_(), similarity_of(1)

    def gradient(of_itself=0.0, **options):
        method, memory, stages = prepared(CREDIT, **options)
        changed = taught + of_itself * torch.diag((CREDIT[IDS] == 0).float())
        loss = method.batch_loss(GivenForward(similarity, changed, IDS), EpochPosition(LAST, 1, stages), memory)
        return torch.autograd.grad(loss.per_pair.sum(), similarity)[0]

    disbelieved = (CREDIT[IDS] == 0).tolist()
    for options in ({}, {"own_cell": "unused"}):
        assert torch.equal(gradient(**options), gradient(3.0, **options))
    assert not torch.equal(gradient(own_cell="kept"), gradient(3.0, own_cell="kept"))
    of_distillation = gradient() - gradient(distillation=0.0)
    assert torch.isclose(of_distillation.diagonal(), torch.zeros(PAIRS), atol=1e-5).tolist() == disbelieved
    assert (gradient(own_cell="unused").diagonal() == 0).tolist() == disbelieved
    assert not (gradient().diagonal() == 0).any()


@pytest.mark.parametrize("probability", [1e-6, 0.01, 0.3, 0.5, 0.8, 0.99])
def test_how_far_a_disbelieved_pair_is_pulled_together_follows_its_probability(probability):
    """By its own cell, in all stages: less than a believed one, and next to nothing where p_ii is near 0 or 1."""
    size, tau, scale = 128, 0.05, 5.0
    similarity = torch.zeros(size, size, dtype=torch.float64)
    similarity[0, 0] = tau * (np.log(probability / (1 - probability)) + np.log(size - 1))
    similarity.requires_grad_()
    pulls = []
    for credit in (0.0, 1.0):
        method, memory = build_method("truepair"), CorrespondenceMemory(size)
        method.prepare(memory)
        memory.write("credit", None, torch.full((size,), credit))
        forward = GivenForward(similarity, similarity.detach(), torch.arange(size))
        loss = method.batch_loss(forward, EpochPosition(0, 1, method.stages(5, 4)), memory)
        (gradient,) = torch.autograd.grad(loss.per_pair[0], similarity)
        pulls.append(-float(gradient[0, 0]))
    # R(p, 0) = 1 − tan p / Σ tan p, of which the other tangents are close to the other probabilities.
    tangent, others, slope = np.tan(probability), 1 - probability, 1 / np.cos(probability) ** 2
    towards = (slope * others + tangent) / (tangent + others) ** 2 * probability * (1 - probability) / tau
    assert pulls[0] == pytest.approx(2 * scale * towards, rel=0.02)
    assert 0 < pulls[0] < pulls[1]


def largest_pull(similarity, credit, **options):
    """Of pair 7 on any cell, in the last stage; the teachers say the opposite of the network."""
    size = len(similarity)
    method, memory = build_method("truepair", options), CorrespondenceMemory(size)
    method.prepare(memory)
    memory.write("credit", None, torch.full((size,), credit))
    similarity = similarity.clone().requires_grad_()
    forward = GivenForward(similarity, -similarity.detach(), torch.arange(size))
    loss = method.batch_loss(forward, EpochPosition(LAST, 1, method.stages(5, 4)), memory)
    (gradient,) = torch.autograd.grad(loss.per_pair[7], similarity)
    assert bool(torch.isfinite(gradient).all())
    return float(gradient.abs().max())


def test_the_gradient_of_a_disbelieved_pair_is_bounded():
    """By 2 λ · 0.298/τ a cell from the complementary part, where two candidates share the probability, and 2 δ/τ from
    the distillation; a believed one pulls up to 2/τ harder, the more the more wrong it is.
    """
    size, tau, scale, delta = 64, 0.05, 5, 3
    two = torch.full((size, size), -2.0)  # pair 7 and another candidate on both sides, and nobody else
    two[7, 7] = two[7, 8] = two[8, 7] = 0.0
    wrong = 1 - 2 * torch.eye(size)
    cases = [
        two,
        wrong,
        -wrong,
        100 * wrong,
        similarity_of(2, size),
        5 * similarity_of(3, size),
        torch.zeros(size, size),
    ]
    bound = 2 * scale * 0.298 / tau
    found = [largest_pull(similarity, 0.0, distillation=0.0) for similarity in cases]
    assert max(found) <= bound and found[0] > 0.99 * bound
    assert max(largest_pull(similarity, 0.0) for similarity in cases) <= bound + 2 * delta / tau
    assert largest_pull(two, 1.0, distillation=0.0) > 1.1 * bound
    assert (
        largest_pull(wrong, 1.0, distillation=0.0) >= 0.99 * 2 / tau > 100 * largest_pull(wrong, 0.0, distillation=0.0)
    )


def test_the_order_of_the_pairs_does_not_matter():
    order = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(1))
    similarity, taught = similarity_of(0), similarity_of(1)
    found = []
    for forward in (
        GivenForward(similarity, taught, IDS),
        GivenForward(similarity[order][:, order], taught[order][:, order], IDS[order]),
    ):
        method, memory, stages = prepared(CREDIT)
        loss = method.batch_loss(forward, EpochPosition(LAST, 1, stages), memory).per_pair
        found.append((loss, memory.read("seen_probability")))
    torch.testing.assert_close(found[0][0][order], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])
