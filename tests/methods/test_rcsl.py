"""RCSL: who is looked up, which pairs learn what, and when."""

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import normalize

import truepair
from tests.losses.test_losses import loop_hinge
from tests.methods.given import GivenForward, GivenNetwork, remembering
from tests.methods.vectors import Vectors, forward_of
from truepair.correspondence import CorrespondenceMemory
from truepair.data.given.known_pairs import with_known_pairs
from truepair.engines.config import GlobalConfig, SGRConfig
from truepair.errors import InputError
from truepair.losses import hinge_ranking
from truepair.losses.semi_paired import mined_matching, uniformity
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.training.setup import Setup

PAIRS = 12
IDS = torch.arange(PAIRS)
WEIGHT = torch.tensor([1.0, 0.0] * 6)
PAIRED = list(range(0, PAIRS, 2))


def position(epoch):
    return EpochPosition(0, epoch, (Stage(16),))


def network():
    draw = torch.Generator().manual_seed(2)
    images, texts = (normalize(torch.randn(PAIRS, 5, generator=draw, dtype=torch.float64), dim=1) for _ in range(2))
    return GivenNetwork(images @ texts.T, images, texts)


def mined(**options):
    """A method that has looked partners up, in a batch of given vectors, beside which nothing can be encoded."""
    method = build_method("rcsl", {"partners": "remembered", **options})
    given = GivenForward([network()], IDS)
    memory = remembering(method, PAIRS, weight=WEIGHT)
    method.survey(given, position(11), memory)
    memory.write("loss", None, 1 - WEIGHT + torch.linspace(0, 0.01, PAIRS))
    record = method.start_epoch(position(11), memory)
    return method, memory, given, record


def test_unpaired_items_are_matched_with_the_nearest_of_the_whole_training_set():
    method, memory, given, record = mined()
    assert (memory.read("weight") > 0.5).tolist() == [True, False] * 6
    images, texts = (side.half().float() for side in (given.networks[0].images, given.networks[0].texts))
    for field, queries, keys in (("image_partner", images, texts), ("text_partner", texts, images)):
        nearest = [max(range(PAIRS), key=lambda j, q=query: float(q @ keys[j])) for query in queries]
        expected = [pair if pair in PAIRED else nearest[pair] for pair in range(PAIRS)]
        assert memory.read(field).tolist() == expected
        assert expected != list(range(PAIRS))
    assert 0 <= record["partners_kept"] < 1
    assert method.mines(position(11)) and not method.mines(position(10))


@pytest.mark.parametrize("epoch", [10, 11])
def test_the_loss_is_that_of_plain_loops(epoch):
    method, memory, given, _ = mined()
    memory.write("weight", None, WEIGHT)
    seen = given.networks[0]
    found = method.batch_loss(given, position(epoch), memory).per_pair
    among = loop_hinge(seen.similarity[PAIRED][:, PAIRED], 0.2, 1)
    spread = float(uniformity(seen.images) + uniformity(seen.texts)) / 2
    expected = [spread / PAIRS] * PAIRS
    for row, hinge in zip(PAIRED, among, strict=True):
        expected[row] += hinge + float((seen.images[row] - seen.texts[row]).square().sum()) / len(PAIRED)
    if epoch == 11:
        banks = [memory.noted(name).double() for name in ("bank_text", "bank_image")]
        fields = [memory.read(name).long().tolist() for name in ("image_partner", "text_partner")]
        partners = [
            torch.stack([own[row] if row in PAIRED else bank[field[row]] for row in range(PAIRS)])
            for own, bank, field in zip((seen.texts, seen.images), banks, fields, strict=True)
        ]
        for row, value in enumerate(mined_matching(seen.images, seen.texts, *partners).tolist()):
            expected[row] += value
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_remembered_partners_are_constants():
    """Neither the vectors of others nor, of a paired item, its own as a partner: each learns from its own rows."""
    method, memory, given, _ = mined(align_weight=0.0, uniform_weight=0.0)
    memory.write("weight", None, WEIGHT)
    seen = given.networks[0]
    leaves = [side.clone().requires_grad_() for side in (seen.images, seen.texts)]
    asked = GivenForward([GivenNetwork((leaves[0] @ leaves[1].T).detach(), *leaves)], IDS)
    found = torch.autograd.grad(method.batch_loss(asked, position(11), memory).per_pair.sum(), leaves)
    partners = method.partner_vectors(given, WEIGHT > 0.5, memory)
    plain = mined_matching(*leaves, *(side.detach() for side in partners))
    for own, expected in zip(found, torch.autograd.grad(plain.sum(), leaves), strict=True):
        torch.testing.assert_close(own, expected, rtol=0, atol=1e-12)
        assert bool(expected.any())


def test_encoded_partners_are_those_of_the_network_as_it_is_and_are_trained():
    draw = torch.Generator().manual_seed(4)
    images, texts = (torch.randn(PAIRS, 6, generator=draw, dtype=torch.float64) for _ in range(2))
    batch = torch.tensor([7, 2, 9, 4, 1])  # of which 7, 9 and 1 are unpaired
    forward = forward_of(Vectors(6).train(), images, texts, batch)
    method = build_method("rcsl", {"align_weight": 0.0, "uniform_weight": 0.0, "margin": 1e-9})
    memory = remembering(method, PAIRS, weight=WEIGHT, image_partner=IDS.roll(1), text_partner=IDS.roll(4))
    network, whole = forward.networks[0], forward_of(forward.engine, images, texts, IDS).networks[0]
    assert method.reads_beside
    own_text, own_image = batch.clone(), batch.clone()
    for row in (0, 2, 4):
        own_text[row], own_image[row] = (batch[row] - 1) % PAIRS, (batch[row] - 4) % PAIRS
    expected = mined_matching(whole.images[batch], whole.texts[batch], whole.texts[own_text], whole.images[own_image])
    found = method.batch_loss(forward, position(11), memory).per_pair
    hinges = torch.zeros(5, dtype=torch.float64)
    hinges[[1, 3]] = hinge_ranking(network.similarity[[1, 3]][:, [1, 3]], margin=1e-9)
    torch.testing.assert_close(found, expected + hinges, rtol=0, atol=1e-12)
    slopes = [
        torch.autograd.grad(loss.sum(), forward.engine.words.weight, retain_graph=True)[0]
        for loss in (found, expected + hinges)
    ]
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-12)
    order = torch.tensor([3, 0, 4, 2, 1])
    moved = method.batch_loss(forward_of(forward.engine, images, texts, batch[order]), position(11), memory).per_pair
    torch.testing.assert_close(moved, found[order], rtol=0, atol=1e-12)


def test_where_all_are_paired_nobody_is_looked_up():
    method, memory, given, _ = mined(partners="encoded")
    own = method.partner_vectors(given, torch.ones(PAIRS, dtype=torch.bool), memory)
    assert own[0] is given.networks[0].texts and own[1] is given.networks[0].images


@pytest.mark.parametrize(
    ("epochs", "decay", "expected"),
    [
        (40, 15, (Stage(25, 15), Stage(15, 5, goes_on=True))),  # as released: a tenth from epoch 15 on, and from 30 on
        (40, 32, (Stage(25, 32), Stage(15, 7, goes_on=True))),
        (40, None, (Stage(25), Stage(15, None, goes_on=True))),
        (8, 5, (Stage(5, 5), Stage(3, 5, goes_on=True))),
    ],
)
def test_a_restart_is_a_stage_that_goes_on(epochs, decay, expected):
    method = build_method("rcsl", {"restart": True})
    assert method.stages(epochs, decay) == expected
    assert build_method("rcsl").stages(epochs, decay) == (Stage(epochs, decay),)
    places = [EpochPosition(stage, epoch, expected) for stage in (0, 1) for epoch in (1, expected[stage].epochs)]
    assert [method.mines(place) for place in places] == [False, False, True, True]
    assert [method.divides(place) for place in places] == [False, expected[0].epochs > 5, True, True]


def test_a_restart_that_nothing_follows_is_refused_and_one_that_nothing_precedes_is_none():
    with pytest.raises(InputError, match="restart is on, but of 10 epochs none is left after the first look-up"):
        build_method("rcsl", {"restart": True, "mining_from": 1.0}).stages(10, 8)
    at_once = build_method("rcsl", {"restart": True, "mining_from": 0.0, "paired": "known"})
    assert at_once.stages(10, 8) == (Stage(10, 8),)


def test_after_a_restart_the_networks_go_on_and_optimizer_and_rate_start_afresh(tiny, tmp_path):
    known = with_known_pairs(truepair.inject_noise(truepair.load(tiny), 0.4, seed=0), "30", seed=0)
    small = {"setup": Setup(model=GlobalConfig(width=8, word_width=8)), "minimum_count": 1, "batch_size": 16}
    runs = []
    for restart, rate in ((True, 1e-12), (False, 1e-12), (True, 1e-3)):
        method = build_method("rcsl", {"paired": "known", "mining_from": 0.5, "restart": restart})
        options = {"epochs": 6, "learning_rate": rate, "decay_after": 2, "dev": truepair.load(tiny, "dev"), **small}
        runs.append(truepair.fit(known, method=method, out=tmp_path / f"{restart}-{rate}", **options))
    restarted, whole, trained = runs
    drawn, kept = (dict(run.model.engine.named_parameters()) for run in (whole, restarted))
    for name, tensor in drawn.items():  # at such a rate they stay as they were drawn
        torch.testing.assert_close(kept[name], tensor, rtol=0, atol=1e-9)
    rates = [line["learning_rate"] for line in trained.metrics]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-3, 1e-4, 1e-4])
    assert [line["learning_rate"] for line in whole.metrics] == pytest.approx([1e-12, 1e-12, *[1e-13] * 4])
    assert trained.result["best_epoch"] > 3
    state = load_file(trained.path / "state" / "checkpoint.safetensors")
    steps = {int(value) for name, value in state.items() if name.endswith("step")}
    assert steps == {3 * 6}


def test_pairs_in_another_order_have_the_same_losses():
    method, memory, given, _ = mined()
    found = method.batch_loss(given, position(12), memory).per_pair
    order = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(1))
    moved = method.batch_loss(given.taken(order), position(12), memory).per_pair
    torch.testing.assert_close(moved, found[order], rtol=0, atol=1e-12)


def test_partners_looked_up_once_stay():
    for once in (True, False):
        method, memory, given, _ = mined(mine_once=once)
        memory.write("image_partner", None, torch.zeros(PAIRS))
        method.survey(given, position(12), memory)
        record = method.start_epoch(position(12), memory)
        assert (memory.read("image_partner").tolist() == [0.0] * PAIRS) == once
        assert ("partners_kept" in record) == (not once)


@pytest.mark.parametrize(
    ("options", "epochs"),
    [({}, [11, 12, 13]), ({"mine_once": True}, [11]), ({"mine_once": True, "partners": "remembered"}, [11, 12, 13])],
)
def test_of_known_pairs_all_are_read_where_partners_are_looked_up_or_remembered(options, epochs):
    method = build_method("rcsl", {"paired": "known", **options})
    assert [epoch for epoch in range(1, 14) if method.surveys(position(epoch))] == epochs
    assert [epoch for epoch in range(1, 14) if method.looks_up(position(epoch))] == ([11] if options else [11, 12, 13])
    memory = remembering(method, PAIRS, weight=WEIGHT)
    method.survey(GivenForward([network()], IDS), position(11), memory)
    method.start_epoch(position(11), memory)
    assert ("bank_text" in memory.notes()) == ("partners" in options)


def test_without_paired_items_the_others_spread():
    method, memory, given, _ = mined(mining_weight=0.0)
    memory.write("weight", None, torch.zeros(PAIRS))
    found = method.batch_loss(given, position(12), memory).per_pair
    assert float(found.std()) < 1e-12 and float(found[0]) < 0
    assert not method.mines(position(12))


def test_known_pairs_are_paired_from_the_first_epoch_on_and_no_others():
    method, given = build_method("rcsl", {"paired": "known"}), GivenForward([network()], IDS)
    memory = CorrespondenceMemory(PAIRS, trusted=WEIGHT > 0.5)
    method.prepare(memory)
    assert (
        not method.surveys(position(1))
        and method.surveys(position(11))
        and method.start_epoch(position(1), memory) == {}
    )
    found = method.batch_loss(given, position(1), memory).per_pair
    divided, other, _, _ = mined()
    other.write("weight", None, WEIGHT)
    expected = divided.batch_loss(given, position(10), other).per_pair
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    method.survey(given, position(11), memory)
    assert 0 <= method.start_epoch(position(11), memory)["partners_kept"] < 1
    assert memory.read("weight").tolist() == WEIGHT.tolist() == method.belief(memory).tolist()
    assert memory.read("image_partner").tolist()[::2] == PAIRED


def test_known_pairs_have_to_be_named_and_are_refused_where_they_are_not_used(tiny, tmp_path):
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    known = with_known_pairs(pairs, "30", seed=0)
    small = {"setup": Setup(model=GlobalConfig(width=8, word_width=8)), "epochs": 3, "minimum_count": 1}
    by_known = build_method("rcsl", {"paired": "known"})
    with pytest.raises(InputError, match="rcsl learns from pairs that are known to match: at least 2"):
        truepair.fit(pairs, method=by_known, out=tmp_path / "none", **small)
    with pytest.raises(InputError, match="rcsl learns nothing from the 30 pairs that are known to match"):
        truepair.fit(known, method="rcsl", out=tmp_path / "idle", **small)
    run = truepair.fit(known, method=by_known, out=tmp_path / "run", **small)
    assert [line["division"]["clean"] for line in run.metrics] == [30, 30, 30]
    assert "partners_kept" in run.metrics[-1] and "partners_kept" not in run.metrics[0]


def test_an_engine_without_vectors_is_refused(tiny, tmp_path):
    small = Setup(model=SGRConfig(width=8, word_width=8, similarity_width=4))
    with pytest.raises(InputError, match="rcsl needs one vector an item, which sgr does not make"):
        truepair.fit(truepair.load(tiny), method="rcsl", setup=small, out=tmp_path / "run", minimum_count=1)


@pytest.mark.parametrize("option", ["mine_once", "restart"])
def test_what_needs_partners_is_refused_where_none_is_looked_up(option):
    with pytest.raises(InputError, match=f"{option} is on and mining_weight is 0"):
        build_method("rcsl", {option: True, "mining_weight": 0.0})
