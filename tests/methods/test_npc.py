"""NPC: the bank, the tried step and the weights against plain loops, and what is taken back."""

import numpy as np
import pytest
import torch

import truepair
from tests.methods.given import remembering
from tests.methods.vectors import Vectors, forward_of
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.losses import info_nce
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.methods.npc.impact import first_step, impact_weight
from truepair.methods.tried_step import tried
from truepair.training.setup import Setup

PAIRS, WIDTH = 24, 4
DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.randn(PAIRS, WIDTH, generator=DRAW, dtype=torch.float64)
TEXTS = IMAGES + 0.3 * torch.randn(PAIRS, WIDTH, generator=DRAW, dtype=torch.float64)
TEXTS[:6] = TEXTS[:6].flip(0)  # mismatched: a step on these harms others
IDS = torch.tensor([2, 0, 3, 1, 7, 9])
FIRST = EpochPosition(0, 1, (Stage(5),))
PARTNERS = {"image_partner": 6 + torch.arange(PAIRS) % 11, "text_partner": 6 + torch.arange(PAIRS) * 5 % 17}
RATE = 0.01


def given(ids=IDS):
    return forward_of(Vectors(WIDTH).train(), IMAGES, TEXTS, ids)


def batch(ids=IDS, **options):
    method = build_method("npc", {"trial_rate": RATE, **options})
    forward, memory = given(ids), remembering(method, PAIRS, **PARTNERS)
    return forward, memory, method.batch_loss(forward, FIRST, memory)


def plain_weights(form):
    """By hand: slopes of the batch's loss, every number moved by the rate against its sign, losses before, after."""
    before = given()
    info_nce(before.similarity, temperature=0.05).mean().backward()
    moved = given()
    for old, new in zip(before.engine.parameters(), moved.engine.parameters(), strict=True):
        new.data -= RATE * old.grad / (old.grad.abs() + 1e-8)
    ratios = []
    for name in PARTNERS:
        ids = PARTNERS[name][IDS]
        losses = [info_nce(f.beside(ids).similarity, temperature=0.05).tolist() for f in (before, moved)]
        ratios.append([(old + 1e-12) / (new + 1e-12) for old, new in zip(*losses, strict=True)])
    weights = []
    for pair in range(len(IDS)):
        ratio = (ratios[0][pair] + ratios[1][pair]) / 2
        weights.append(1.0 if ratio >= 1 else float(np.tanh(ratio)) if form == "tanh" else ratio)
    return weights


@pytest.mark.parametrize("form", ["tanh", "ratio"])
@pytest.mark.parametrize("bank", ["trained", "held"])
@pytest.mark.parametrize("averaged", [True, False])
def test_weights_and_losses_are_those_of_plain_loops(form, bank, averaged):
    forward, memory, found = batch(weight=form, bank=bank, averaged=averaged)
    weights = plain_weights(form)
    assert min(weights) < 1 == max(weights)
    assert memory.read("weight", IDS).tolist() == pytest.approx(weights, abs=1e-6)
    own = info_nce(forward.similarity, temperature=0.05).tolist()
    own = [sum(own) / len(own)] * len(own) if averaged else own
    expected = [weight * loss for weight, loss in zip(weights, own, strict=True)]
    if bank == "trained":
        for name in PARTNERS:
            of_bank = info_nce(forward.beside(PARTNERS[name][IDS]).similarity, temperature=0.05).tolist()
            expected = [a + b for a, b in zip(expected, of_bank, strict=True)]
    assert found.per_pair.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_tried_step_is_taken_back_and_leaves_no_gradient():
    forward, _, found = batch()
    fresh = Vectors(WIDTH)
    for parameter, as_made in zip(forward.engine.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(parameter, as_made) and parameter.grad is None
    assert forward.engine.training
    found.per_pair.mean().backward()
    # The gradient is that of the loss with the weights held: the step was not differentiated through.
    weights = torch.tensor(plain_weights("tanh"), dtype=torch.float64)
    again = given()
    loss = weights * info_nce(again.similarity, temperature=0.05)
    loss = loss + sum(info_nce(again.beside(p[IDS]).similarity, temperature=0.05) for p in PARTNERS.values())
    loss.mean().backward()
    for one, other in zip(forward.engine.parameters(), again.engine.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_step_is_undone_even_after_an_error():
    layer = torch.nn.Linear(2, 2)
    before = layer.weight.clone()

    def broken():
        with tried({layer.weight: torch.ones(2, 2)}):
            assert torch.equal(layer.weight, before + 1)
            raise ValueError

    with pytest.raises(ValueError):
        broken()
    assert torch.equal(layer.weight, before)


def test_a_step_that_helps_all_partners_weighs_all_pairs_fully():
    better, worse = torch.tensor([0.5, 0.1]), torch.tensor([0.6, 0.2])
    assert impact_weight((worse, worse), (better, better)).tolist() == [1.0, 1.0]
    harmed = impact_weight((better, better), (worse, worse))
    assert bool(((harmed >= 0) & (harmed < 1)).all())
    assert impact_weight((better, better), (worse, worse), "ratio").tolist() == pytest.approx([5 / 6, 0.5])
    zero = torch.zeros(2)
    assert impact_weight((zero, zero), (zero, zero)).tolist() == [1.0, 1.0]


def test_every_number_moves_by_the_rate():
    parameter = torch.nn.Parameter(torch.zeros(3))
    (step,) = first_step({parameter: torch.tensor([2.0, -1e-3, 0.0])}, 0.1).values()
    assert step.tolist() == pytest.approx([-0.1, 0.1, 0.0], abs=1e-5)


def test_order_does_not_matter():
    order = torch.randperm(len(IDS), generator=torch.Generator().manual_seed(7))
    losses = [batch(ids)[2].per_pair for ids in (IDS, IDS[order])]
    torch.testing.assert_close(losses[1], losses[0][order], rtol=0, atol=1e-10)


def surveyed(**options):
    method, memory = build_method("npc", options), None
    memory = remembering(method, PAIRS)
    for ids in torch.arange(PAIRS).split(8):
        method.survey(given(ids), FIRST, memory)
    return method, memory


def test_the_bank_is_of_pairs_with_small_losses_and_partners_are_the_nearest_in_it():
    method, memory = surveyed()
    forward = given(torch.arange(8))
    assert memory.read("loss")[:8].tolist() == pytest.approx(
        info_nce(forward.similarity, temperature=0.05).tolist(), abs=1e-5
    )
    loss = torch.where(torch.arange(PAIRS) % 3 > 0, 0.1, 4.0) + 0.02 * torch.rand(PAIRS)
    memory.write("loss", None, loss)
    record = method.start_epoch(FIRST, memory)
    bank = [pair for pair in range(PAIRS) if pair % 3 > 0]
    assert record["bank_share"] == pytest.approx(len(bank) / PAIRS)
    everything = given(torch.arange(PAIRS)).networks[0]
    for field, vectors in (("image_partner", everything.images), ("text_partner", everything.texts)):
        rows = vectors.half().float()
        nearest = [max(bank, key=lambda j, q=query: float(q @ rows[j])) for query in rows]
        assert memory.read(field).long().tolist() == nearest
    assert all(int(memory.read("image_partner")[pair]) == pair for pair in bank)
    assert method.start_epoch(EpochPosition(0, 2, (Stage(5),)), memory) == {}


def test_where_no_pair_is_sure_all_are_in_the_bank(caplog):
    method, memory = surveyed(mixture="released", clean=0.999999)
    memory.write("loss", None, torch.linspace(0, 1, PAIRS))
    assert method.start_epoch(FIRST, memory)["bank_share"] == 1
    assert "all pairs are in it" in caplog.text


def test_pairs_are_read_once_after_the_warm_up():
    method = build_method("npc", {"warm_up_epochs": 2})
    stages = method.stages(5, None)
    assert [epoch for epoch in range(1, 6) if method.surveys(EpochPosition(0, epoch, stages))] == [3]
    with pytest.raises(InputError, match="NPC needs more epochs than the 2 of its warm-up"):
        method.stages(2, None)


def test_engines_that_know_nothing_are_refused_and_pieces_change_nothing(tiny, tmp_path):
    small = Setup(model=GlobalConfig(width=8, word_width=8))
    with pytest.raises(InputError, match="npc with warm_up_epochs 0.*global starts from weights drawn anew"):
        truepair.fit(truepair.load(tiny), method="npc", setup=small, out=tmp_path / "run", minimum_count=1)
    with pytest.raises(InputError, match="looks at other pairs beside"):
        truepair.Criterion("npc", pairs=10, epochs=2)


def test_a_gradient_in_pieces_is_that_of_the_whole_batch():
    from contextlib import nullcontext
    from dataclasses import dataclass

    from truepair.data.batch import PairBatch
    from truepair.training.pieces import ForwardInPieces

    @dataclass(frozen=True)
    class Cut:
        held: torch.Tensor

        def __len__(self):
            return len(self.held)

        def piece(self, rows):
            return self.held[rows]

    whole = given()
    engine, pieces = whole.engine, PairBatch(IDS, Cut(IMAGES[IDS]), Cut(TEXTS[IDS]))
    cut = ForwardInPieces(engine, pieces, None, 4, (0, 0, 1, 0), nullcontext)
    found, expected = (
        forward.gradient(info_nce(forward.similarity, temperature=0.05).mean()) for forward in (cut, whole)
    )
    for parameter in engine.parameters():
        torch.testing.assert_close(found[parameter], expected[parameter])
        assert parameter.grad is None
    info_nce(cut.similarity, temperature=0.05).mean().detach()
    cut.backward(info_nce(cut.similarity, temperature=0.05).mean())  # once more, as training does
    for parameter in engine.parameters():
        torch.testing.assert_close(parameter.grad, expected[parameter])
