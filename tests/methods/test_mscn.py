"""MSCN: losses by plain loops, who learns from what, the division begun from known pairs, refusals."""

import numpy as np
import pytest
import torch

import truepair
from tests.methods.given import remembering
from tests.methods.vectors import Vectors, forward_of
from truepair.correspondence.division import Part
from truepair.engines.config import GlobalConfig
from truepair.engines.ensemble import EnsembleEngine
from truepair.errors import InputError
from truepair.losses.meta import meta_cross_entropy
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.training.setup import Setup

PAIRS, WIDTH = 30, 4
DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.randn(PAIRS, WIDTH, generator=DRAW, dtype=torch.float64)
TEXTS = IMAGES + 0.3 * torch.randn(PAIRS, WIDTH, generator=DRAW, dtype=torch.float64)
IDS = torch.tensor([2, 0, 3, 1, 7, 9])
KNOWN = torch.arange(PAIRS) >= PAIRS - 20


def position(epoch=20):
    return EpochPosition(0, epoch, (Stage(25),))


def given(dual=True, ids=IDS):
    members = [Vectors(WIDTH, seed=seed) for seed in range(2 if dual else 1)]
    for seed, member in enumerate(members):
        torch.manual_seed(seed)
        member.use_head(3)
        member.double()
    engine = EnsembleEngine(members) if dual else members[0]
    return forward_of(engine.train(), IMAGES, TEXTS, ids)


def remembered(method, **values):
    memory = remembering(method, PAIRS, **values)
    memory.trusted = KNOWN
    return memory


def plain_loss(similarity, kept, warm_up):
    rows, losses = similarity.tolist(), []
    for i, row in enumerate(rows):
        s = row[i]
        margin = 0.2 if warm_up else 0.2 * s**2 / (s**2 + (1 - s) ** 2)
        hinges = [
            (max(0.0, margin - s + row[j]), max(0.0, margin - s + rows[j][i])) for j in range(len(rows)) if j != i
        ]
        if warm_up:
            losses.append(sum(a + b for a, b in hinges) / len(hinges))
        else:
            losses.append(sum(hardest(side) for side in zip(*hinges, strict=True)) if kept[i] else 0.0)
    return losses


def hardest(hinges, share=0.4):
    """The mean of the two largest of five: four tenths."""
    found = sorted(hinges)[-round(share * len(hinges)) :]
    return sum(found) / len(found)


@pytest.mark.parametrize("epoch", [5, 20])
@pytest.mark.parametrize("dual", [True, False])
def test_losses_are_those_of_plain_loops(epoch, dual):
    method, forward = build_method("mscn", {"co_train": dual, "meta_pairs": 20, "negatives": 0.4}), given(dual)
    weights = {"weight": torch.arange(PAIRS) % 2, "weight_b": torch.arange(PAIRS) % 3}
    memory = remembered(method, **{name: weights[name].float() for name in ("weight", "weight_b")[: method.networks]})
    torch.manual_seed(5)
    found = method.batch_loss(forward, position(epoch), memory).per_pair
    expected = [0.0] * len(IDS)
    for number, network in enumerate(forward.networks):
        teacher = weights["weight_b" if dual and number == 0 else "weight"][IDS] > 0.5
        plain = plain_loss(network.similarity, teacher.tolist(), warm_up=epoch == 5)
        expected = [a + b for a, b in zip(expected, plain, strict=True)]
    if epoch == 20:
        torch.manual_seed(5)
        order = torch.arange(PAIRS)[KNOWN][torch.randperm(20)]
        for network in forward.beside(order).networks:
            logits = network.engine.scores(network.images, network.texts)
            expected = [value + float(meta_cross_entropy(logits).detach()) for value in expected]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_head_learns_from_known_pairs_alone_and_the_encoders_from_the_hinges_alone():
    method, forward = build_method("mscn", {"co_train": False}), given(dual=False)
    memory = remembered(method)
    engine = forward.engine
    head = dict(engine.similarity_head.named_parameters())
    encoders = {name: p for name, p in engine.named_parameters() if not name.startswith("head.")}

    def gradients(loss):
        engine.zero_grad()
        loss.backward()
        return {name: p.grad for name, p in {**head, **encoders}.items()}

    hinges = gradients(
        method.batch_loss(forward, position(), memory).per_pair.mean() - method.meta_loss(forward, memory)
    )
    meta = gradients(method.meta_loss(given(dual=False), memory))
    assert all(meta[name] is None for name in encoders)
    assert all(float(hinges[name].abs().sum()) > 0 for name in encoders)


@pytest.mark.parametrize("dual", [True, False])
def test_no_gradient_of_the_hinges_reaches_a_head_after_the_warm_up(dual):
    method = build_method("mscn", {"co_train": dual})
    method.meta_loss = lambda *_: torch.zeros((), dtype=torch.float64)
    for epoch, learns in ((5, True), (20, False)):
        forward = given(dual)
        method.batch_loss(forward, position(epoch), remembered(method)).per_pair.mean().backward()
        for network in forward.engine.networks():
            slopes = [parameter.grad for parameter in network.similarity_head.parameters()]
            assert [slope is not None and bool(slope.any()) for slope in slopes] == [learns] * len(slopes)


def test_the_gradient_of_the_head_is_that_of_finite_differences():
    method, forward = build_method("mscn", {"co_train": False, "meta_pairs": 20}), given(dual=False)
    memory, head = remembered(method), forward.engine.similarity_head

    def value():
        torch.manual_seed(1)
        return method.meta_loss(forward, memory)

    value().backward()
    for parameter in head.parameters():
        flat, slope = parameter.data.view(-1), parameter.grad.view(-1)
        for place in range(len(flat)):
            kept = float(flat[place])
            flat[place] = kept + 1e-6
            above = float(value().detach())
            flat[place] = kept - 1e-6
            below = float(value().detach())
            flat[place] = kept
            assert float(slope[place]) == pytest.approx((above - below) / 2e-6, abs=1e-7)


def stepped(method, forward, memory, rate, margins):
    """Cross entropy of known pairs after a step of the encoders against the hinges, of given margins."""
    engine = forward.engine
    head = {id(parameter) for parameter in engine.similarity_head.parameters()}
    encoders = [parameter for parameter in engine.parameters() if id(parameter) not in head]
    similarity = forward.again().networks[0].similarity
    hinges = []
    for i in range(len(IDS)):
        for side in (similarity[i], similarity[:, i]):
            wrong = [margins[i] - similarity[i, i] + side[j] for j in range(len(IDS)) if j != i]
            hinges.append(torch.stack(wrong).clamp(min=0).topk(round(0.4 * len(wrong))).values.mean())
    slopes = torch.autograd.grad(torch.stack(hinges).sum(), encoders)
    before = [parameter.data.clone() for parameter in encoders]
    for parameter, slope in zip(encoders, slopes, strict=True):
        parameter.data -= rate * slope
    torch.manual_seed(1)
    order = torch.arange(PAIRS)[KNOWN][torch.randperm(20)]
    network = forward.beside(order).networks[0]
    value = float(meta_cross_entropy(network.engine.scores(network.images, network.texts)).detach())
    for parameter, data in zip(encoders, before, strict=True):
        parameter.data = data
    return value


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_the_gradient_of_the_head_through_a_trial_step_is_that_of_finite_differences(rate):
    options = {"co_train": False, "meta_pairs": 20, "negatives": 0.4, "trial": "taken", "trial_rate": rate}
    method, forward = build_method("mscn", options), given(dual=False)
    memory, head = remembered(method), forward.engine.similarity_head
    margins = [0.2 * s**2 / (s**2 + (1 - s) ** 2) for s in forward.networks[0].similarity.diagonal().tolist()]
    torch.manual_seed(1)
    loss = method.meta_loss(forward, memory)
    assert float(loss.detach()) == pytest.approx(stepped(method, forward, memory, rate, margins), abs=1e-12)
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for n, p in forward.engine.named_parameters() if "head" not in n)
    slopes = {name: parameter.grad.clone() for name, parameter in head.named_parameters()}
    for name, parameter in head.named_parameters():
        flat = parameter.data.view(-1)
        for place in range(len(flat)):
            kept, around = float(flat[place]), []
            for moved in (kept + 1e-6, kept - 1e-6):
                flat[place] = moved
                around.append(stepped(method, forward, memory, rate, margins))
            flat[place] = kept
            expected = (around[0] - around[1]) / 2e-6
            assert float(slopes[name].view(-1)[place]) == pytest.approx(expected, rel=1e-4, abs=1e-6), (name, place)


def test_a_trial_step_of_frozen_encoders_changes_nothing():
    found = []
    for trial in ("left_out", "taken"):
        method, forward = build_method("mscn", {"co_train": False, "trial": trial}), given(dual=False)
        heads = {id(parameter) for parameter in forward.engine.similarity_head.parameters()}
        for parameter in forward.engine.parameters():
            parameter.requires_grad_(id(parameter) in heads)
        torch.manual_seed(1)
        loss = method.meta_loss(forward, remembered(method))
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in forward.engine.similarity_head.parameters())])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)


def test_heads_have_a_rate_of_their_own():
    method, forward = build_method("mscn", {"head_rate": 0.5}), given()
    (encoders, one), (heads, rate) = method.auxiliary.parameter_groups(forward.engine, None)
    assert (one, rate) == (1.0, 0.5)
    assert len(heads) == 8 and len(encoders) + len(heads) == len(list(forward.engine.parameters()))


def test_the_survey_keeps_scores_of_given_and_of_wrong_pairs():
    method, forward = build_method("mscn"), given()
    memory = remembered(method)
    assert [method.surveys(position(epoch)) for epoch in (5, 6)] == [False, True]
    method.survey(forward, position(), memory)
    for suffix, network in zip(("", "_b"), forward.networks, strict=True):
        rows = network.similarity.detach()
        assert memory.read("score" + suffix, IDS).tolist() == pytest.approx(rows.diagonal().tolist(), abs=1e-6)
        wrong = [float(rows[i, (i + 1) % len(IDS)]) for i in range(len(IDS))]
        assert memory.read("wrong" + suffix, IDS).tolist() == pytest.approx(wrong, abs=1e-6)


@pytest.mark.parametrize("mixture", ["beta", "released"])
def test_the_division_finds_the_groups_of_scores(mixture):
    method = build_method("mscn", {"co_train": False, "mixture": mixture})
    draw = np.random.default_rng(0)
    right = np.arange(400) % 5 > 1
    scores = np.where(right, draw.beta(12, 4, 400), draw.beta(3, 9, 400))
    memory = remembering(method, 400, score=torch.from_numpy(scores), wrong=torch.from_numpy(draw.beta(3, 9, 400)))
    memory.trusted = torch.from_numpy(right & (np.arange(400) < 60))
    record = method.start_epoch(position(), memory)
    found = method.division(memory).numpy() == int(Part.CLEAN)
    assert (found == right).mean() > 0.95 and record["clean_share"] == pytest.approx(0.6, abs=0.04)
    assert record["known_score"] > 0.6 > record["wrong_score"]
    torch.testing.assert_close(method.belief(memory), torch.from_numpy(scores).float())


def test_one_group_of_scores_leaves_no_pair_out(caplog):
    method = build_method("mscn", {"co_train": False})
    scores = torch.from_numpy(np.random.default_rng(0).beta(8, 4, 400))
    memory = remembering(method, 400, score=scores, wrong=scores.flip(0))
    memory.trusted = torch.arange(400) < 40
    method.start_epoch(position(), memory)
    assert "no two groups" in caplog.text and memory.read("weight").min() == 1


@pytest.mark.parametrize("epoch", [3, 20])
def test_order_does_not_matter(epoch):
    method = build_method("mscn", {"meta_pairs": 20})
    memory = remembered(method, weight=torch.rand(PAIRS), weight_b=torch.rand(PAIRS))
    order, losses = torch.randperm(len(IDS), generator=torch.Generator().manual_seed(7)), []
    for ids in (IDS, IDS[order]):
        torch.manual_seed(0)
        losses.append(method.batch_loss(given(ids=ids), position(epoch), memory).per_pair)
    torch.testing.assert_close(losses[1], losses[0][order], rtol=0, atol=1e-12)


def fit(tiny, tmp_path, pairs, **options):
    setup = Setup(model=GlobalConfig(width=8, word_width=8))
    method = build_method("mscn", {"warm_up_epochs": 1, **options})
    return truepair.fit(pairs, method=method, setup=setup, out=tmp_path / "run", epochs=2, minimum_count=1)


def test_too_few_known_pairs_are_refused_before_any_work(tiny, tmp_path):
    from truepair.data.given.known_pairs import with_known_pairs

    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    for pairs, known in ((noisy, 0), (with_known_pairs(noisy, "19", seed=0), 19)):
        with pytest.raises(
            InputError, match=f"mscn learns from pairs that are known to match: at least 20, and {known}"
        ):
            fit(tiny, tmp_path, pairs)
    with pytest.raises(InputError, match="method crcl learns nothing from the 30 pairs"):
        truepair.fit(with_known_pairs(noisy, "30", seed=0), method="crcl", out=tmp_path / "run", epochs=1)
    assert not (tmp_path / "run").exists()
    run = fit(tiny, tmp_path, with_known_pairs(noisy, "30", seed=0))
    assert run.metrics[-1]["meta_loss"] > 0 and run.model.needs.head_width == 64


def test_too_few_epochs_are_refused():
    with pytest.raises(InputError, match="mscn needs more epochs than the 5 of its warm-up"):
        build_method("mscn").stages(5, None)
