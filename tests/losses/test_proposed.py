"""The loss of proposed captions: a plain loop's, whatever the order, and nothing of what is no candidate."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses.proposed import proposed_partner

TAU = 0.1


def draw(count=5, number=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    similarity, proposed = (torch.rand(count, n, generator=generator, dtype=torch.float64) for n in (count, number))
    places = torch.randperm(count, generator=generator)[:number]
    no_candidate = torch.rand(number, count, generator=generator) < 0.3
    return similarity, proposed, places, no_candidate


def by_loops(similarity, proposed, places, no_candidate):
    losses = []
    for k, row in enumerate(places.tolist()):
        own = math.exp(proposed[row, k] / TAU)
        others = sum(math.exp(similarity[row, j] / TAU) for j in range(len(similarity)) if not no_candidate[k, j])
        images = sum(math.exp(proposed[i, k] / TAU) for i in range(len(similarity)))
        losses.append(-math.log(own / (own + others)) - math.log(own / images))
    return losses


@pytest.mark.parametrize(("count", "number"), [(5, 3), (1, 1), (4, 4), (2, 0)])
def test_it_is_a_plain_loop(count, number):
    given = draw(count, number)
    found = proposed_partner(given[0], given[1], given[2], no_candidate=given[3], temperature=TAU)
    assert found.tolist() == pytest.approx(by_loops(*given))


def test_the_order_of_pairs_and_of_proposals_does_not_matter():
    similarity, proposed, places, no_candidate = draw()
    found = proposed_partner(similarity, proposed, places, no_candidate=no_candidate, temperature=TAU)
    order, turn = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 1])
    moved = torch.argsort(order)[places][turn]
    other = proposed_partner(
        similarity[order][:, order],
        proposed[order][:, turn],
        moved,
        no_candidate=no_candidate[turn][:, order],
        temperature=TAU,
    )
    torch.testing.assert_close(other, found[turn])


def test_what_is_no_candidate_has_no_gradient_and_all_gradients_are_bounded():
    similarity, proposed, places, no_candidate = draw()
    similarity, proposed = (1e3 * side.requires_grad_() for side in (similarity, proposed))
    loss = proposed_partner(similarity, proposed, places, no_candidate=no_candidate, temperature=TAU)
    to_batch, to_proposed = torch.autograd.grad(loss.sum(), (similarity, proposed))
    for k, row in enumerate(places.tolist()):
        assert not to_batch[row][no_candidate[k]].any()
    assert float(to_batch.abs().max()) <= 1 / TAU and float(to_proposed.abs().max()) <= 2 / TAU


def test_shapes_that_do_not_fit_are_refused():
    similarity, proposed, places, no_candidate = draw()
    for wrong in ((proposed.T, no_candidate), (proposed, no_candidate.T)):
        with pytest.raises(InputError, match="3 proposals for 5 pairs"):
            proposed_partner(similarity, wrong[0], places, no_candidate=wrong[1])
    with pytest.raises(InputError, match="temperature"):
        proposed_partner(similarity, proposed, places, no_candidate=no_candidate, temperature=0.0)
