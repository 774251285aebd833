"""DisNCL's loss against plain loops over its equations, its discriminators, and what happens where nothing is clean."""

import math

import pytest
import torch

import truepair
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.engines.config import GlobalConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.engines.subspaces import Parts
from truepair.errors import DivergedError, InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.methods.disncl.disentanglers import DISENTANGLERS, InformationBottleneck
from truepair.methods.disncl.options import DisNCLConfig
from truepair.training.setup import Setup

PAIRS = 9
SIZES = InputSizes(6, 3, 9), Needs(subspace_width=5, subspace_hidden=7)


class GivenForward:
    def __init__(self, similarity, ids, auxiliary=None, parts=None):
        self.similarity, self.auxiliary = similarity, auxiliary
        self.networks = [type("Network", (), {"similarity": similarity, "parts": parts})()]
        self.batch = type("Batch", (), {"ids": ids})()


def position(epoch, step=0):
    return EpochPosition(0, epoch, (Stage(10),), step, 4, PAIRS)


def similarities(seed=0):
    """Five pairs are each other's best, four are not."""
    generator = torch.Generator().manual_seed(seed)
    similarity = 0.6 * torch.rand(PAIRS, PAIRS, generator=generator, dtype=torch.float64) - 0.3
    similarity[range(5), range(5)] += 0.7
    similarity[range(5, PAIRS), range(5, PAIRS)] -= 0.5
    return similarity


def some_parts(seed, rows=PAIRS, leaf=False):
    generator = torch.Generator().manual_seed(seed)
    made = [torch.nn.functional.normalize(torch.randn(rows, n, generator=generator), dim=1) for n in (8, 5, 5)]
    return Parts(*(part.requires_grad_(leaf) for part in made))


def prepared(options=None):
    method = build_method("disncl", options or {})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    return method, memory


def loop_entropy(p, y):
    return -sum(a * (max(math.log(b), -4.0) if b > 0 else -4.0) for a, b in zip(p, y, strict=True))


def loop_loss(similarity):
    """Σ over the clean set of L_align and L_soft."""
    s = similarity.tolist()
    others = [[j for j in range(PAIRS) if j != i] for i in range(PAIRS)]
    clean = [i for i in range(PAIRS) if all(s[i][i] > s[i][j] and s[i][i] > s[j][i] for j in others[i])]
    total = [0.0] * PAIRS
    for i in clean:
        margin = 0.2 * (10 ** min(max(s[i][i], 0.0), 1.0) - 1) / 9
        align = sum(
            max(margin - s[i][i] + hardest, 0.0)
            for hardest in (max(s[i][j] for j in others[i]), max(s[j][i] for j in others[i]))
        )
        rows = [[math.exp(s[i][j] / 0.05) for j in range(PAIRS)], [math.exp(s[j][i] / 0.05) for j in range(PAIRS)]]
        p, q = ([value / sum(row) for value in row] for row in rows)
        own = [1.0 if j == i else 0.0 for j in range(PAIRS)]
        soft = loop_entropy(p, [0.5 * a + 0.5 * b for a, b in zip(own, q, strict=True)])
        soft += loop_entropy(q, [0.5 * a + 0.5 * b for a, b in zip(own, p, strict=True)])
        total[i] = align + soft
    return clean, total


def test_the_loss_follows_equations_2_to_6():
    method, memory = prepared({"disentangler": "none"})
    similarity = similarities()
    clean, expected = loop_loss(similarity)
    assert clean == [0, 1, 2, 3, 4]
    ids = torch.arange(PAIRS).flip(0)
    found = method.batch_loss(GivenForward(similarity, ids), position(6), memory)
    assert torch.allclose(found.per_pair, torch.tensor(expected, dtype=torch.float64), atol=1e-10)
    assert memory.read("clean")[ids].tolist() == [1.0] * 5 + [0.0] * 4
    assert method.division(memory)[ids].tolist() == [int(Part.CLEAN)] * 5 + [int(Part.NOISY)] * 4


# After 19 of 20 steps, 1/20 of the way from the least, 2 or 4, to all 9 of the batch is left.
WARM_UPS = [("hardest", 0, 1), ("all", 0, 8), ("falling 0.25", 19, 3), ("falling", 19, 5)]


@pytest.mark.parametrize(("choice", "step", "counted"), WARM_UPS)
def test_the_warm_up_ranks_all_pairs_with_a_constant_margin(choice, step, counted):
    name, *least = choice.split()
    method, memory = prepared({"warm_up_negatives": name, **({"warm_up_least": float(least[0])} if least else {})})
    s = similarities()
    found = method.batch_loss(GivenForward(s, torch.arange(PAIRS)), position(1 + step // 4, step % 4), memory).per_pair
    for i in range(PAIRS):
        expected = 0.0
        for side in (s[i], s[:, i]):
            hardest = sorted((float(side[j]) for j in range(PAIRS) if j != i), reverse=True)[:counted]
            expected += sum(max(0.2 - float(s[i, i]) + value, 0.0) for value in hardest) / counted
        assert float(found[i]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("similarity", [torch.ones(PAIRS, PAIRS), torch.ones(PAIRS, PAIRS) - torch.eye(PAIRS)])
def test_an_empty_clean_set_costs_nothing_and_teaches_nothing(similarity):
    method, memory = prepared()
    engine = build_engine(GlobalConfig(width=8, word_width=4), *SIZES)
    forward = GivenForward(
        similarity.requires_grad_(),
        torch.arange(PAIRS),
        method.auxiliary.build(engine),
        (some_parts(0), some_parts(1)),
    )
    loss = method.batch_loss(forward, position(6), memory).per_pair.sum()
    assert float(loss.detach()) == 0
    (gradient,) = torch.autograd.grad(loss, similarity)
    assert float(gradient.abs().max()) == 0


def test_a_run_that_loses_its_clean_set_is_stopped():
    method, memory = prepared()
    memory.write("clean", None, torch.zeros(PAIRS))
    method.finish_epoch(position(5), memory)  # the warm-up may
    with pytest.raises(DivergedError, match=r"epoch 6 only 0\.00 %"):
        method.finish_epoch(position(6), memory)


def bottleneck(config=None):
    torch.manual_seed(0)
    return InformationBottleneck(build_engine(GlobalConfig(width=8, word_width=4), *SIZES), config or DisNCLConfig())


def test_information_terms_are_weighted_as_equations_1_7_and_11():
    config = DisNCLConfig(balance=0.3, invariant_weight=0.7, exclusive_weight=0.4, regularizer_weight=2.0)
    terms = {term.name: term for term in bottleneck(config).terms(some_parts(0), some_parts(1))}
    weights = {name: float(term.loss.detach() / term.value.detach()) for name, term in terms.items()}
    expected = {"vs_ft": -0.3, "ts_fv": -0.3, "vx_fv": -0.7, "tx_ft": -0.7, "divergence": 0.3 * 0.7}
    # Those that encoders lower stand with a minus as well: the discriminator raises them, behind a reversed gradient.
    expected |= {"vx_ft": -0.7 * 1.4, "tx_fv": -0.7 * 1.4, "vs_vx": -2.0, "ts_tx": -2.0}
    assert weights == pytest.approx(expected, rel=1e-5)


def test_the_divergence_is_the_squared_distance_of_the_parts():
    image, text = some_parts(0), some_parts(1)
    terms = {term.name: term for term in bottleneck().terms(image, text)}
    distance = sum(
        (a - b) ** 2
        for rows in zip(image.invariant.tolist(), text.invariant.tolist(), strict=True)
        for a, b in zip(*rows, strict=True)
    )
    assert float(terms["divergence"].value) == pytest.approx(distance / PAIRS, rel=1e-6)


@pytest.mark.parametrize("name", [*InformationBottleneck.RAISED, *InformationBottleneck.LOWERED])
def test_discriminators_raise_every_term_and_encoders_only_those_they_should(name):
    """A small step along the negative gradient: of the discriminator alone, and of the parts alone."""
    learner, image, text = bottleneck(), some_parts(0, 40, leaf=True), some_parts(1, 40, leaf=True)
    parts = [image.features, image.invariant, image.exclusive, text.features, text.invariant, text.exclusive]
    weights = list(learner.discriminators[name].parameters())

    def term():
        torch.manual_seed(1)  # the same derangement
        return next(term for term in learner.terms(image, text) if term.name == name)

    before = term()
    of_weights = torch.autograd.grad(before.loss, weights, retain_graph=True)
    of_parts = torch.autograd.grad(before.loss, parts, allow_unused=True)

    def after_step(leaves, gradients):
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients, strict=True):
                if gradient is not None:
                    leaf -= 1e-2 * gradient
            value = float(term().value)
            for leaf, gradient in zip(leaves, gradients, strict=True):
                if gradient is not None:
                    leaf += 1e-2 * gradient
        return value

    start = float(before.value.detach())
    assert after_step(weights, of_weights) > start
    moved = after_step(parts, of_parts)
    assert moved > start if name in InformationBottleneck.RAISED else moved < start


def test_everything_that_is_compared_learns():
    """Raised and lowered alike, the gradient reaches parts and features (eq. 9 and 12 name both under max and min)."""
    learner = bottleneck()
    image, text = some_parts(0, 40, leaf=True), some_parts(1, 40, leaf=True)
    parts = [image.features, image.invariant, image.exclusive, text.features, text.invariant, text.exclusive]
    touched = {}
    for term in learner.terms(image, text):
        gradients = torch.autograd.grad(term.loss, parts, allow_unused=True, retain_graph=True)
        touched[term.name] = [int(gradient is not None) for gradient in gradients]
    assert touched == {
        "vs_ft": [0, 1, 0, 1, 0, 0],
        "ts_fv": [1, 0, 0, 0, 1, 0],
        "vx_fv": [1, 0, 1, 0, 0, 0],
        "tx_ft": [0, 0, 0, 1, 0, 1],
        "vx_ft": [0, 0, 1, 1, 0, 0],
        "tx_fv": [1, 0, 0, 0, 0, 1],
        "vs_vx": [0, 1, 1, 0, 0, 0],
        "ts_tx": [0, 0, 0, 0, 1, 1],
        "divergence": [0, 1, 0, 0, 1, 0],
    }


@pytest.mark.parametrize("name", DISENTANGLERS)
def test_every_disentangler_is_finite_and_reaches_the_heads(name):
    torch.manual_seed(0)
    learner = DISENTANGLERS[name](build_engine(GlobalConfig(width=8, word_width=4), *SIZES), DisNCLConfig())
    image, text = some_parts(0, leaf=True), some_parts(1, leaf=True)
    loss = sum(term.loss for term in learner.terms(image, text))
    gradients = torch.autograd.grad(loss, [image.invariant, text.invariant, *learner.parameters()])
    assert all(bool(torch.isfinite(gradient).all()) and float(gradient.abs().max()) > 0 for gradient in gradients)


def test_consistency_and_cross_prediction_are_what_they_say():
    image, text = some_parts(0), some_parts(0)
    engine = build_engine(GlobalConfig(width=8, word_width=4), *SIZES)
    consistency, overlap = DISENTANGLERS["fdmer"](engine, DisNCLConfig()).terms(image, text)
    assert float(consistency.value) == 0  # the same invariant parts on both sides
    expected = 2 * (image.invariant * image.exclusive).sum(dim=1).square().mean()
    assert float(overlap.value) == pytest.approx(float(expected), rel=1e-6)
    own, crossed = DISENTANGLERS["dmim"](engine, DisNCLConfig()).terms(image, text)
    assert float(own.value.detach()) == pytest.approx(float(crossed.value.detach()), rel=1e-6)


def test_reconstruction_is_the_squared_error_of_both_sides_features():
    image, text = some_parts(0), some_parts(1)
    torch.manual_seed(0)
    learner = DISENTANGLERS["reconstruction"](build_engine(GlobalConfig(width=8, word_width=4), *SIZES), DisNCLConfig())
    (term,) = learner.terms(image, text)
    expected = 0.0
    for decoder, side in ((learner.image_decoder, image), (learner.text_decoder, text)):
        found = decoder(torch.cat([side.invariant, side.exclusive], dim=1)).detach().tolist()
        expected += sum(
            (a - b) ** 2 for rows in zip(found, side.features.tolist(), strict=True) for a, b in zip(*rows, strict=True)
        )
    assert float(term.value.detach()) == pytest.approx(expected / PAIRS, rel=1e-5)


SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
OPTIONS = {
    "warm_up_epochs": 4,
    "warm_up_negatives": "all",
    "least_clean": 0.0,
    "head_rate": 1.0,
    "subspace_width": 8,
    "hidden_width": 8,
}


def fitted(tiny, out, resume=False, **more):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.2, seed=1)
    method = truepair.build_method("disncl", {**OPTIONS, **more})
    settings = {"epochs": 8, "seed": 5, "batch_size": 16, "minimum_count": 1, "learning_rate": 1e-2}
    return truepair.fit(
        noisy, method=method, dev=truepair.load(tiny, "dev"), out=out, setup=SMALL, resume=resume, **settings
    )


def test_a_run_logs_every_term_and_resumes_exactly(tiny, tmp_path, monkeypatch):
    from truepair.training import loop

    whole = fitted(tiny, tmp_path / "whole")
    last = whole.metrics[-1]
    assert {"align", "soft", "clean_share", "divergence", *InformationBottleneck.RAISED} <= last.keys()
    assert "align" not in whole.metrics[0]
    step, done = loop.Training._step, []

    def dying(self, *arguments):
        if len(done) == 27:  # in the fifth epoch, the first after the warm-up
            raise KeyboardInterrupt
        done.append(1)
        return step(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_step", dying)
        with pytest.raises(KeyboardInterrupt):
            fitted(tiny, tmp_path / "cut")
    fitted(tiny, tmp_path / "cut", resume=True)
    for name in ("metrics.jsonl", "result.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole.path / name).read_bytes()
    names = {name for name, _ in whole.model.engine.named_parameters()}
    assert any(name.startswith("text_exclusive") for name in names)
    assert not any("discriminator" in name for name in names)


@pytest.mark.parametrize("name", DISENTANGLERS)
def test_weights_of_zero_leave_nothing_of_a_disentangler(name):
    config = DisNCLConfig(disentangle_weight=0.0, regularizer_weight=0.0)
    learner = DISENTANGLERS[name](build_engine(GlobalConfig(width=8, word_width=4), *SIZES), config)
    assert all(float(term.loss.detach()) == 0 for term in learner.terms(some_parts(0), some_parts(1)))


def test_without_the_adversarial_terms_what_is_raised_stays():
    terms = bottleneck(DisNCLConfig(adversarial_weight=0.0)).terms(some_parts(0), some_parts(1))
    silent = {term.name for term in terms if float(term.loss.detach()) == 0}
    assert silent == set(InformationBottleneck.LOWERED)


def test_information_counts_once_a_batch_where_the_alignment_counts_once_a_clean_pair():
    """Eq. 3 and 6 are sums over the clean set, eq. 9 and 12 expectations; all divided by B."""
    similarity, engine = similarities(), build_engine(GlobalConfig(width=8, word_width=4), *SIZES)
    learner = DISENTANGLERS["fdmer"](engine, DisNCLConfig())
    losses = []
    for auxiliary in (learner, None):
        method, memory = prepared({"disentangler": "fdmer"})
        forward = GivenForward(similarity, torch.arange(PAIRS), auxiliary, (some_parts(0), some_parts(1)))
        losses.append(float(method.batch_loss(forward, position(6), memory).per_pair.mean()))
    clean = torch.arange(PAIRS) < 5
    terms = learner.terms(
        *(
            Parts(*(part[clean] for part in (s.features, s.invariant, s.exclusive)))
            for s in (some_parts(0), some_parts(1))
        )
    )
    assert losses[0] - losses[1] == pytest.approx(sum(float(term.value) for term in terms) / PAIRS, rel=1e-5)


def test_invariant_heads_have_a_rate_of_their_own_and_all_is_trained_once():
    method = build_method("disncl", {"head_rate": 0.5, "main_rate": 0.1})
    engine = build_engine(GlobalConfig(width=8, word_width=4), *SIZES)
    auxiliary = method.auxiliary.build(engine)
    groups = {
        rate: list(map(id, parameters)) for parameters, rate in method.auxiliary.parameter_groups(engine, auxiliary)
    }
    heads = [id(p) for name, p in engine.named_parameters() if name.startswith(("image_inv", "text_inv"))]
    assert sorted(groups[0.5]) == sorted(heads)
    everything = [*map(id, engine.parameters()), *map(id, auxiliary.parameters())]
    assert sorted(groups[1.0] + groups[0.5]) == sorted(everything)
    assert [method.auxiliary.rate_scale(position(epoch)) for epoch in (1, 5, 6, 7)] == [1.0, 1.0, 0.1, 0.1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disentangler": "vae"}, "disentangler"),
        ({"balance": 1.5}, "balance"),
        ({"head_rate": 0.0}, "head_rate"),
        ({"subspace_width": 0}, "subspace_width"),
        ({"log_floor": 1.0}, "log_floor"),
        ({"soft_weight": -1.0}, "soft_weight"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        build_method("disncl", options)


def test_a_run_shorter_than_the_warm_up_is_refused():
    with pytest.raises(InputError, match="more epochs than the 5"):
        build_method("disncl").stages(5, None)
