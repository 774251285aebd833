"""Our own method: what is CRCL's is CRCL's, the average is a plain loop's, and who teaches whom, and when."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import truepair
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import beyond_chance, upper_group
from truepair.engines.config import GlobalConfig, SGRConfig
from truepair.errors import InputError
from truepair.losses import active_complementary, batch_distillation
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.ablation import NOTHING, PARTS
from truepair.methods.truepair.teacher import AuxiliaryTeachers, Teachers
from truepair.training import fit as training_fit
from truepair.training.setup import Setup

PAIRS = 6
SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 3, "seed": 5, "batch_size": 16, "minimum_count": 1, "learning_rate": 5e-3}


def similarity_of(seed, size=PAIRS):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(size, size, generator=generator) * 0.4 + 0.3 * torch.eye(size)


class Views:
    def __init__(self, similarity):
        self.similarity = similarity


class GivenForward:
    """A batch whose similarity is given, and the mean of those of two teachers."""

    class Engine:
        learning_factor = 2.0

    def __init__(self, similarity, taught, ids):
        self.similarity, self.taught = similarity, taught
        self.batch = type("Batch", (), {"ids": ids})()
        self.networks = [type("Network", (), {"engine": self.Engine()})()]
        self.auxiliary = Teachers(torch.nn.Identity(), [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])

    def through(self, network):
        share = [1.5, 0.5][[*self.auxiliary.before].index(network)]  # no constant: a softmax would not see it
        return Views(share * self.taught)


def prepared(labels=None, **options):
    method, memory = build_method("truepair", options), CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    if labels is not None:
        memory.write("credit", None, labels)
    return method, memory, method.stages(5, 4)


CREDIT = torch.tensor([0.0, 0.1, 0.7, 1.0, 0.0, 0.3])
IDS = torch.tensor([3, 0, 5, 1, 4, 2])
LAST = 3
"""The last stage, where `pieces` says nothing."""


def test_stages_follow_the_epochs():
    assert [(stage.epochs, stage.decay_after) for stage in build_method("truepair").stages(10, 8)] == [
        *3 * [(8, None)],
        (10, 8),
    ]
    assert [stage.epochs for stage in build_method("truepair").stages(1, 1)] == [3, 3, 3, 1]
    assert [stage.epochs for stage in build_method("truepair", {"pieces": (4, 5)}).stages(6, 5)] == [4, 5, 6]
    with pytest.raises(InputError, match="more epochs are needed than the 2"):
        build_method("truepair", {"pieces": ()}).stages(2, 1)
    assert len(build_method("truepair", {"pieces": (), "labels": "given"}).stages(2, 1)) == 1


def test_the_credit_of_a_pair_is_the_posterior_of_its_label_or_the_label():
    generator = torch.Generator().manual_seed(0)
    odds = torch.cat([torch.randn(60, generator=generator) - 5, torch.randn(140, generator=generator) + 2])
    label = torch.sigmoid(odds)
    for credit, expected in (("label", label * (label >= 0.1)), ("posterior", upper_group(label).float())):
        method, memory = build_method("truepair", {"credit": credit}), CorrespondenceMemory(200)
        method.prepare(memory)
        memory.write("label", None, label)
        method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
        found = memory.read("credit")
        believed = found > 0
        torch.testing.assert_close(found[believed], expected[believed])
        assert bool((expected[~believed] < 0.5).all())
        assert torch.equal(method.taken_as_matched(memory), believed)
    assert (believed[:60].float().mean() < 0.05) and (believed[60:].float().mean() > 0.95)
    memory.write("label", None, torch.full((200,), 0.3))  # no two groups: the label
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), torch.full((200,), 0.3))


def test_low_labels_count_as_far_as_chance_does_not_explain_them():
    """Where labels in no two groups leave next to nobody believed; in the first epochs all are."""
    generator = torch.Generator().manual_seed(0)
    method, memory = build_method("truepair"), CorrespondenceMemory(400)
    method.prepare(memory)
    memory.write("synthetic", None, torch.sigmoid(torch.randn(400, generator=generator) - 6))
    method.start_epoch(EpochPosition(0, 2, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), torch.ones(400))
    wrong, right = torch.randn(300, generator=generator) - 6, torch.randn(100, generator=generator) - 4
    label = torch.sigmoid(torch.cat([wrong, right]))
    assert upper_group(label) is None
    memory.write("label", None, label)
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    credit = memory.read("credit")
    assert torch.equal(credit, beyond_chance(label, memory.read("synthetic")))
    assert 20 < int((credit > 0).sum()) < 120
    assert float((credit[:300] > 0).float().mean()) < 0.15 < 0.3 < float((credit[300:] > 0).float().mean())
    more = torch.sigmoid(torch.logit(label) + 2.5)  # more than a twentieth is believed: the label, as ever
    assert upper_group(more) is None and 20 < int((more >= 0.1).sum()) < 200
    memory.write("label", None, more)
    method.start_epoch(EpochPosition(1, 1, method.stages(5, 4)), memory)
    assert torch.equal(memory.read("credit"), more.masked_fill(more < 0.1, 0.0))


def test_labels_are_compared_with_the_same_mean_of_synthetic_mismatches():
    """The last epoch's alone, of a network that begins anew, would be those of one that tells nothing yet."""
    generator = torch.Generator().manual_seed(0)
    method, memory = build_method("truepair", {"pieces": (4,)}), CorrespondenceMemory(400)
    method.prepare(memory)
    stages = method.stages(5, 4)
    right = torch.cat([torch.full((160,), -7.0), torch.full((240,), 2.0)])
    credits, made = [], []
    for stage, epoch in ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3)):
        method.start_epoch(EpochPosition(stage, epoch, stages), memory)
        credits.append(memory.read("credit"))
        # Both are seen as they are at the end of the first stage, and as one by a network that has begun anew.
        told = 1.0 if stage == 0 else 0.05
        for field, centre in (("seen_probability", right), ("synthetic", torch.full((400,), -7.0))):
            odds = told * centre - 5 * (1 - told) * 0.1 + torch.randn(400, generator=generator)
            memory.write(field, None, torch.sigmoid(odds))
        made.append(torch.logit(memory.read("synthetic").double()))
        if epoch > 2 and stage == 0:
            assert bool((credits[-1][:160] == 0).all() and (credits[-1][160:] > 0).all())
    assert torch.equal(credits[4], credits[5]), "labels stand still, and so does what is believed of them"
    assert bool((credits[4][:160] == 0).all() and (credits[4][160:] > 0).all())
    kept = memory.noted("synthetic_odds").double()
    torch.testing.assert_close(kept, (made[1] + made[2] + made[5]) / 3, atol=1e-4, rtol=0)


@pytest.mark.parametrize("label_memory", ["mean", "momentum"])
def test_labels_remember_all_epochs_and_networks(label_memory):
    """Against a plain loop over the epochs of all stages; the first two of each leave the labels as they are."""
    generator = torch.Generator().manual_seed(0)
    method, memory, stages = prepared(label_memory=label_memory, pieces=(3, 4))
    expected, seen = torch.ones(PAIRS), []
    for stage, epochs in enumerate((3, 4, 5)):
        for epoch in range(1, epochs + 1):
            method.start_epoch(EpochPosition(stage, epoch, stages), memory)
            if epoch > 2:
                seen.append(memory.read("seen_probability").double().tolist())
                odds = [[np.log(p / (1 - p)) for p in line] for line in seen]
                mean = [1 / (1 + np.exp(-sum(column) / len(odds))) for column in zip(*odds, strict=True)]
                moving = seen[0]
                for line in seen[1:]:
                    moving = [0.8 * old + 0.2 * new for old, new in zip(moving, line, strict=True)]
                expected = torch.tensor(mean if label_memory == "mean" else moving, dtype=torch.float32)
            torch.testing.assert_close(memory.read("label"), expected)
            memory.write("seen_probability", None, torch.rand(PAIRS, generator=generator) * 0.98 + 0.01)
    assert len(seen) == 6
    memory.write("seen_probability", None, torch.tensor([0.0, 1.0, 0.5, 0.0, 1.0, 0.5]))  # no odds are infinite
    method.start_epoch(EpochPosition(2, 5, stages), memory)
    assert bool(torch.isfinite(memory.read("odds")).all())


def test_the_last_stage_has_the_teachers_of_all_before_and_these_have_none():
    method, memory, stages = prepared(CREDIT, distillation=2.0, own_cell="kept")
    similarity, taught = similarity_of(0), similarity_of(1)
    forward = GivenForward(similarity, taught, IDS)
    alone = active_complementary(similarity, CREDIT[IDS])
    for stage in range(LAST):
        assert torch.equal(method.batch_loss(forward, EpochPosition(stage, 4, stages), memory).per_pair, alone)
    found = method.batch_loss(forward, EpochPosition(LAST, 1, stages), memory)
    expected = batch_distillation(similarity, 2 * taught)  # in the scale in which the engine learns
    torch.testing.assert_close(found.per_pair, alone + 2 * expected)
    assert found.scalars["distillation"] == pytest.approx(float(expected.mean()))


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


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.frozen = torch.nn.Parameter(torch.randn(3)), torch.nn.Parameter(torch.ones(2))
        self.frozen.requires_grad_(False)
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))


@pytest.mark.parametrize("epochs", [0.0, 0.5, 2.0])
def test_the_average_is_that_of_a_plain_loop(epochs):
    torch.manual_seed(0)
    engine, auxiliary = Plain(), AuxiliaryTeachers(build_method("truepair", {"average_epochs": epochs}).config)
    networks = auxiliary.build(engine)
    assert networks.average.frozen is engine.frozen  # what is frozen is not kept twice
    expected, stages, steps = [0.0] * 3, build_method("truepair").stages(10, 8), 5
    for done in range(20):
        with torch.no_grad():
            engine.weight.copy_(torch.randn(3))
            engine.count += 1
        position = EpochPosition(0, 1 + done // steps, stages, done % steps, steps)
        auxiliary.follow(engine, networks, position)
        share = 1 / max(1.0, min(epochs * steps, 1 + done / 4))
        expected = [mean + share * (new - mean) for mean, new in zip(expected, engine.weight.tolist(), strict=True)]
        assert networks.average.weight.tolist() == pytest.approx(expected, abs=1e-6)
        assert int(networks.average.count) == done + 1
    assert auxiliary.model(engine, networks) is networks.average
    after = auxiliary.build(engine, networks)
    assert after.before[0] is networks.average and len(after.before) == LAST
    assert auxiliary.build(engine, after).before[1] is networks.average


def fit(tiny, out, method, setup=SMALL, **more):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)
    return truepair.fit(noisy, method=method, dev=truepair.load(tiny, "dev"), out=out, setup=setup, **QUICK | more)


def lines_of(run):
    return [{key: line[key] for key in ("loss", "label_mean", "dev", "detection", "division")} for line in run.metrics]


def test_without_what_is_new_it_is_crcl(tiny, tmp_path):
    ours = fit(tiny, tmp_path / "ours", build_method("truepair", {**NOTHING, "pieces": (3,)}))
    theirs = fit(tiny, tmp_path / "theirs", build_method("crcl", {"pieces": (3,)}))
    assert lines_of(ours) == lines_of(theirs)
    weights = [load_file(run.folder.model) for run in (ours, theirs)]
    assert all(torch.equal(weights[0][name], tensor) for name, tensor in weights[1].items())


@pytest.mark.parametrize("model", [SMALL.model, SGRConfig(width=16, word_width=8, similarity_width=8)])
def test_the_teacher_is_what_the_first_stage_left_and_stays_as_it_is(tiny, tmp_path, model):
    seen = {}

    def note(epoch, of):
        seen[epoch] = load_file(tmp_path / "run" / "state" / "checkpoint.safetensors")

    setup = Setup(model=model)
    run = fit(tiny, tmp_path / "run", build_method("truepair", {"pieces": (3,)}), setup, on_epoch=note)
    parts = [
        {name.removeprefix(part): tensor for name, tensor in seen[epoch].items() if name.startswith(part)}
        for epoch, part in ((2, "auxiliary/average."), (3, "auxiliary/before.0."), (6, "auxiliary/before.0."))
    ]
    assert parts[1].keys() == parts[2].keys() == parts[0].keys()
    assert all(torch.equal(parts[1][name], tensor) for name, tensor in parts[2].items())
    learned = [name for name, tensor in parts[0].items() if tensor.is_floating_point()]
    assert any(not torch.equal(parts[0][name], parts[1][name]) for name in learned)  # a stage later
    best = load_file(run.folder.model)
    average = {name.removeprefix("auxiliary/average."): tensor for name, tensor in seen[6].items()}
    if run.result["best_epoch"] == 6:
        assert all(torch.equal(average[name], tensor) for name, tensor in best.items())
    assert [("distillation" in line) for line in run.metrics] == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("scores", "options", "best"),
    [
        ([1, 9, 5, 2, 3, 4], {}, 3),  # the teacher, as the stage left it, and not the best of its stage
        ([1, 9, 5, 2, 6, 4], {}, 5),
        ([1, 9, 5, 2, 5, 5], {}, 5),  # no better than the last stage, so that this is the model, at its first best
        ([1, 9, 5, 2, 3, 4], {"distillation": 0.0}, 6),  # nothing was learned of it: it is another network
    ],
)
def test_where_the_last_stage_ends_below_its_teacher_that_is_the_model(
    tiny, tmp_path, monkeypatch, scores, options, best
):
    left, seen = list(scores), {}
    monkeypatch.setattr(training_fit, "evaluate", lambda model, pairs: {"rsum": left.pop(0) if left else 0})

    def note(epoch, of):
        seen[epoch] = load_file(tmp_path / "run" / "state" / "checkpoint.safetensors")

    run = fit(tiny, tmp_path / "run", build_method("truepair", {"pieces": (3,), **options}), on_epoch=note)
    assert run.result["best_epoch"] == best
    part = "auxiliary/before.0." if best == 3 else "auxiliary/average."
    kept = seen[6 if best == 3 else best]  # the teacher is there to the end
    model = load_file(run.folder.model)
    assert all(torch.equal(kept[part + name], tensor) for name, tensor in model.items())


@pytest.mark.parametrize("batches", [7, 20, 31])
def test_a_run_cut_off_in_either_stage_ends_as_if_it_had_not_been(tiny, tmp_path, monkeypatch, batches):
    method = build_method("truepair", {"pieces": (3,), "average_epochs": 0.5})
    whole = fit(tiny, tmp_path / "whole", method)
    with stopped_after(monkeypatch, batches, saved=True):
        fit(tiny, tmp_path / "cut", method)
    assert_same_run(fit(tiny, tmp_path / "cut", method, resume=True).path, whole.path)


@pytest.mark.parametrize("credit", [0.0, 1.0])
def test_all_pairs_disbelieved_or_none(tiny, tmp_path, monkeypatch, credit):
    """What is learned of the teacher does not need a single pair that is believed."""
    method = build_method("truepair", {"pieces": (3,)})
    start = type(method).start_epoch

    def believed(self, position, memory):
        scalars = start(self, position, memory)
        memory.write("credit", None, torch.full((memory.count,), credit))
        return scalars

    monkeypatch.setattr(type(method), "start_epoch", believed)
    run = fit(tiny, tmp_path / "run", method)
    assert all(np.isfinite(line["loss"]) for line in run.metrics)


def test_two_pairs_and_captions_that_are_all_the_same_train_on(tiny, tmp_path):
    pairs = truepair.load(tiny)
    few = truepair.fit(
        pairs.take(np.arange(2)).compact(), method="truepair", out=tmp_path / "few", setup=SMALL, **QUICK
    )
    assert all(np.isfinite(line["loss"]) for line in few.metrics)
    folder = tmp_path / "same"
    folder.mkdir()
    for file in tiny.iterdir():
        text = "\n".join(["the same words"] * len(file.read_text().splitlines())) if file.suffix == ".txt" else ""
        (folder / file.name).write_bytes(text.encode() or file.read_bytes())
    with pytest.warns(UserWarning, match="captions"):
        run = truepair.fit(truepair.load(folder), method="truepair", out=tmp_path / "run", setup=SMALL, **QUICK)
    assert all(np.isfinite(line["loss"]) for line in run.metrics)


def test_every_row_of_the_ablation_is_another_method_than_the_whole():
    whole = build_method("truepair").config
    rows = {**PARTS, "nothing": NOTHING}
    made = {name: build_method("truepair", options).config for name, options in rows.items()}
    assert whole not in made.values()
    assert len({repr(config) for config in made.values()}) == len(rows)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0},
        {"target_temperature": 0.0},
        {"distillation": -1.0},
        {"average_epochs": -1.0},
        {"threshold": 1.5},
        {"pieces": (7, 2)},
        {"taught": "none"},
        {"partners": "proposed", "pieces": ()},
        {"momentum": 0.9},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        build_method("truepair", options)


def test_rows_of_the_ablation_are_those_of_its_table():
    spec = Path(truepair.__file__).parent / "reproduce" / "specs" / "ours.toml"
    rows = tomllib.loads(spec.read_text(encoding="utf-8"))["rows"]
    for name, options in {**PARTS, "nothing": NOTHING}.items():
        words = [word for key, value in options.items() for word in (f"--truepair-{key.replace('_', '-')}", value)]
        read = [word if word.startswith("--") else value_of(word) for word in rows[f"truepair-{name}"][1].split()[1:]]
        assert read == words


def value_of(word):
    try:
        return float(word)
    except ValueError:
        return word
