"""IN²R: prototypes against a plain look-up, what they do not depend on, and two networks from one start."""

import math

import pytest
import torch
from torch.nn.functional import normalize

import truepair
from tests.losses.test_losses import loop_hinge
from tests.methods.given import GivenForward, GivenNetwork, remembering
from tests.methods.vectors import Vectors, forward_of
from truepair.data.batch import PairBatch
from truepair.engines.config import GlobalConfig, SGRConfig
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.errors import InputError
from truepair.losses import hinge_ranking
from truepair.losses.rematching import symmetric_cross_entropy
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Forward, Stage
from truepair.methods.in2r.prototypes import AuxiliaryRefiners, Refiner, Refiners
from truepair.training.setup import Setup

PAIRS, WIDTH = 20, 8
BATCH = torch.tensor([2, 9, 0, 17, 5, 13, 11])  # of which 17, 13 and 11 are noisy
WEIGHT = torch.linspace(1, 0, PAIRS)  # clean up to pair 9; of these 0 to 4 are no less than their mean


def position(epoch=20, turn=0):
    return EpochPosition(0, epoch, (Stage(25),), step=4 * turn, steps=4)


def network(seed, rows=PAIRS):
    draw = torch.Generator().manual_seed(seed)
    images, texts = (normalize(torch.randn(rows, WIDTH, generator=draw, dtype=torch.float64), dim=1) for _ in range(2))
    texts = normalize(images + 0.5 * texts, dim=1)
    return GivenNetwork(images @ texts.T, images, texts)


def surveyed(**options):
    """A method that has seen all pairs, with the division as given."""
    method = build_method("in2r", {"neighbours": 2, "co_train": False, **options})
    memory = remembering(method, PAIRS)
    whole = [network(seed) for seed in range(method.networks)]
    ids = torch.arange(PAIRS)
    for half in (ids[:10], ids[10:]):
        method.survey(GivenForward([each.taken(half) for each in whole], half), position(), memory)
    for suffix in method.suffixes:
        memory.write("weight" + suffix, None, WEIGHT)
    for suffix, teacher in zip(method.suffixes, reversed(method.suffixes), strict=True):
        method.fill_bank(suffix, teacher, memory)
    return method, memory, whole


def loss_of(method, memory, networks, turn=0, refiners=None):
    refiners = (refiners or Refiners(method.networks, WIDTH)).double().eval()
    return method.batch_loss(GivenForward(networks, BATCH, refiners), position(turn=turn), memory).per_pair


def loop_refined(refiner, neighbours):
    """A refiner in loops: heads of attention among the neighbours of one item, then layer norm and mean."""
    rows = []
    for own in neighbours:
        query, key, value = (layer(own).tolist() for layer in (refiner.query, refiner.key, refiner.value))
        count, size = len(own), len(own[0]) // refiner.heads
        attended = [[] for _ in range(count)]
        for head in range(refiner.heads):
            places = range(head * size, (head + 1) * size)
            for row in range(count):
                scores = [sum(query[row][d] * other[d] for d in places) / math.sqrt(size) for other in key]
                shares = [math.exp(score - max(scores)) for score in scores]
                attended[row] += [
                    sum(share * other[d] for share, other in zip(shares, value, strict=True)) / sum(shares)
                    for d in places
                ]
        added = own + refiner.output(torch.tensor(attended, dtype=own.dtype))
        centred = added - added.mean(dim=1, keepdim=True)
        scaled = centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
        rows.append((scaled * refiner.norm.weight + refiner.norm.bias).mean(dim=0))
    return normalize(torch.stack(rows), dim=1)


def plain_prototype(refiner, own, keys, partners, banned, count):
    """The partners of the nearest keys, refined."""
    near = sorted((pair for pair in keys if pair != banned), key=lambda pair: -float(own @ keys[pair]))[:count]
    return loop_refined(refiner, [torch.stack([partners[pair] for pair in near])])[0]


@pytest.mark.parametrize("turn", [0, 1])
def test_the_loss_is_that_of_a_plain_look_up(turn):
    method, memory, whole = surveyed(co_train=True)
    learner, other = whole[turn].taken(BATCH), whole[1 - turn]
    refiners = Refiners(2, WIDTH).double()
    found = loss_of(method, memory, [each.taken(BATCH) for each in whole], turn, refiners)
    images, texts = ([row.half().double() for row in side] for side in (other.images, other.texts))
    bank_images, bank_texts = ({pair: side[pair] for pair in range(5)} for side in (images, texts))
    noisy = [3, 5, 6]
    rows = [(learner.images[row], learner.texts[row], int(BATCH[row])) for row in noisy]
    for_texts, for_images = refiners[turn]
    to_text = torch.stack([plain_prototype(for_texts, v, bank_images, bank_texts, pair, 2) for v, _, pair in rows])
    to_image = torch.stack([plain_prototype(for_images, t, bank_texts, bank_images, pair, 2) for _, t, pair in rows])
    anew = symmetric_cross_entropy(torch.stack([v for v, _, _ in rows]) @ to_text.T)
    anew = (anew + symmetric_cross_entropy(to_image @ torch.stack([t for _, t, _ in rows]).T)) / 2
    expected = [0.0] * len(BATCH)
    for matrix, margin in ((learner.similarity, 0.2), (learner.image_similarity, 0.3), (learner.text_similarity, 0.3)):
        for row, value in enumerate(loop_hinge(matrix, margin, 1)):
            expected[row] += value if row not in noisy else 0.0
    for row, value in zip(noisy, anew.tolist(), strict=True):
        expected[row] += value / len(BATCH)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_bank_holds_the_surest_pairs():
    _, memory, whole = surveyed()
    assert memory.noted("bank_ids").tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(memory.noted("bank_text"), whole[0].texts[:5].half())
    assert surveyed(bank=3)[1].noted("bank_ids").tolist() == [0, 1, 2]


def test_the_image_of_a_noisy_pair_does_not_learn_from_its_given_text():
    method, memory, whole = surveyed()
    given = whole[0].taken(BATCH)
    given.images.requires_grad_()
    places, refiners = torch.tensor([3, 5, 6]), Refiners(1, WIDTH).double().eval()
    gradients = []
    for texts in (given.texts, given.texts.roll(1, dims=0)):
        exchanged = GivenNetwork(given.similarity, given.images, texts)
        exchanged.texts = texts.detach().requires_grad_()
        loss = method.rematched(exchanged, BATCH[places], places, 0, refiners[0], memory)
        gradients.append(torch.autograd.grad(loss.sum(), given.images)[0])
    assert torch.equal(*gradients) and bool(gradients[0].any())


def test_a_pair_in_the_bank_is_not_its_own_neighbour():
    method, memory, whole = surveyed(neighbours=1)
    memory.write("weight", None, torch.zeros(PAIRS))  # a newer division doubts pairs that the bank still holds
    given, places = whole[0].taken(torch.arange(4)), torch.arange(4)
    refiners = Refiners(1, WIDTH).double()
    with_own = given.images @ given.texts.T
    found = method.rematched(given, torch.arange(4), places, 0, refiners[0], memory)
    assert not torch.allclose(found, symmetric_cross_entropy(with_own), atol=0.1)


def test_neither_the_order_of_the_bank_nor_that_of_the_batch_matters():
    method, memory, whole = surveyed()
    torch.manual_seed(0)
    refiners = Refiners(1, WIDTH)
    found = loss_of(method, memory, [whole[0].taken(BATCH)], refiners=refiners)
    order = torch.tensor([3, 1, 0, 4, 2])
    for name in ("bank_ids", "bank_image", "bank_text"):
        memory.note(name, memory.noted(name)[order])
    torch.testing.assert_close(
        loss_of(method, memory, [whole[0].taken(BATCH)], refiners=refiners), found, rtol=0, atol=1e-12
    )
    order = torch.tensor([6, 2, 0, 5, 1, 3, 4])
    given = GivenForward([whole[0].taken(BATCH)], BATCH, refiners.double()).taken(order)
    moved = method.batch_loss(given, position(), memory).per_pair
    torch.testing.assert_close(moved, found[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("width", "heads"), [(8, 4), (6, 1)])
@pytest.mark.parametrize("count", [1, 3])
def test_a_refiner_is_attention_and_layer_norm(width, heads, count):
    torch.manual_seed(0)
    refiner, neighbours = Refiner(width).double().eval(), torch.randn(4, count, width, dtype=torch.float64)
    assert refiner.heads == heads
    torch.testing.assert_close(refiner(neighbours), loop_refined(refiner, neighbours), rtol=0, atol=1e-12)
    torch.testing.assert_close(refiner(neighbours.flip(1)), refiner(neighbours), rtol=0, atol=1e-12)
    shown = refiner.train()(neighbours)
    assert not torch.allclose(shown, refiner.eval()(neighbours), atol=1e-3)  # dropout while it is trained alone


def test_a_bank_of_one_pair_leaves_noisy_pairs_alone():
    method, memory, whole = surveyed(bank=1)
    found = loss_of(method, memory, [whole[0].taken(BATCH)])
    assert found[[3, 5, 6]].tolist() == [0.0] * 3


def test_the_warm_up_compares_within_the_modalities_too():
    method, given = build_method("in2r"), [network(0), network(1)]
    memory = remembering(method, PAIRS)
    found = method.batch_loss(GivenForward(given, torch.arange(PAIRS)), position(1, turn=1), memory).per_pair
    matrices = (given[1].similarity, given[1].image_similarity, given[1].text_similarity)
    torch.testing.assert_close(found, sum(symmetric_cross_entropy(matrix) for matrix in matrices))


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_second_pass_shows_the_items_unaltered(epoch):
    """In the warm-up and after it: rows are the items of the batch as it is, columns the same items without noise."""
    draw, ids = torch.Generator().manual_seed(5), torch.arange(6)
    given, altered = ([torch.randn(6, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2)] for _ in range(2))
    clean = forward_of(Vectors(WIDTH).train(), *given, ids)
    batch = PairBatch(ids, *(side + 0.5 * noise for side, noise in zip(given, altered, strict=True)))
    forward = Forward(clean.engine, batch, Refiners(1, WIDTH).double(), clean.prepare)
    method = build_method("in2r", {"co_train": False, "second_pass": "taken"})
    memory = remembering(method, 6, weight=torch.ones(6))
    found = method.batch_loss(forward, position(epoch), memory).per_pair
    (first,), (second,) = forward.networks, clean.networks
    within = first.images @ second.images.T, first.texts @ second.texts.T
    assert all(bool((matrix.diagonal() < 0.99).any()) for matrix in within)
    expected = sum(
        hinge_ranking(matrix, margin=margin) if epoch > 1 else symmetric_cross_entropy(matrix)
        for matrix, margin in zip((first.similarity, *within), (0.2, 0.3, 0.3), strict=True)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    slopes = [
        torch.autograd.grad(loss.sum(), clean.engine.regions.weight, retain_graph=True)[0] for loss in (found, expected)
    ]
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-12)  # from both passes


def test_with_a_second_pass_it_trains_and_ends_elsewhere(tiny, tmp_path):
    setup = Setup(model=GlobalConfig(width=8, word_width=8))
    options = {"epochs": 2, "minimum_count": 1, "learning_rate": 1e-2, "batch_size": 16, "setup": setup}
    losses = []
    for second in ("left_out", "taken"):
        method = build_method("in2r", {"second_pass": second})
        run = truepair.fit(truepair.load(tiny), method=method, out=tmp_path / second, **options)
        losses.append([line["loss"] for line in run.metrics])
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_both_networks_start_alike_and_part(tiny, tmp_path):
    setup = Setup(model=GlobalConfig(width=8, word_width=8)).with_preparation(truepair.load(tiny))
    engine = build_engine(setup.model, setup.preparation.sizes, Needs(networks=2))
    AuxiliaryRefiners().build(engine)
    first, second = (dict(each.named_parameters()) for each in engine.networks())
    assert all(torch.equal(value, second[name]) and value is not second[name] for name, value in first.items())
    options = {"epochs": 2, "minimum_count": 1, "learning_rate": 1e-2, "batch_size": 16}
    run = truepair.fit(truepair.load(tiny), method="in2r", setup=setup, out=tmp_path / "run", **options)
    first, second = (dict(each.named_parameters()) for each in run.model.engine.networks())
    assert not any(torch.allclose(value, second[name], atol=1e-5) for name, value in first.items())


def test_an_engine_without_vectors_is_refused(tiny, tmp_path):
    small = Setup(model=SGRConfig(width=8, word_width=8, similarity_width=4))
    with pytest.raises(InputError, match="in2r needs one vector an item, which sgr does not make"):
        truepair.fit(truepair.load(tiny), method="in2r", setup=small, out=tmp_path / "run", minimum_count=1)


def test_the_gradient_is_that_of_the_value():
    method, memory, whole = surveyed()
    places, refiners = torch.tensor([3, 5, 6]), Refiners(1, WIDTH).double().eval()

    def loss(images, texts):
        given = GivenNetwork(images @ texts.T, images, texts)
        return method.rematched(given, BATCH[places], places, 0, refiners[0], memory)

    given = whole[0].taken(BATCH)
    assert torch.autograd.gradcheck(loss, (given.images.clone().requires_grad_(), given.texts.clone().requires_grad_()))
