"""RCSL: who is looked up, which pairs learn what, and when."""

import pytest
import torch
from torch.nn.functional import normalize

import truepair
from tests.losses.test_losses import loop_hinge
from tests.methods.given import GivenForward, GivenNetwork, remembering
from truepair.correspondence import CorrespondenceMemory
from truepair.data.given.known_pairs import with_known_pairs
from truepair.engines.config import GlobalConfig, SGRConfig
from truepair.errors import InputError
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
    method, given = build_method("rcsl", options), GivenForward([network()], IDS)
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
    expected = [spread] * PAIRS
    for row, hinge in zip(PAIRED, among, strict=True):
        expected[row] += hinge + float((seen.images[row] - seen.texts[row]).square().sum())
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


def test_looking_up_once_without_looking_up_is_refused():
    with pytest.raises(InputError, match="mine_once is on and mining_weight is 0"):
        build_method("rcsl", {"mine_once": True, "mining_weight": 0.0})
