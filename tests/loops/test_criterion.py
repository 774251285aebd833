"""`Criterion` drives the methods of training: the same numbers, exact state, clear refusals."""

import io
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load, save
from torch.nn.functional import cross_entropy, normalize

import truepair
from truepair.data.batch import EpochBatches
from truepair.engines.config import GlobalConfig
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.errors import InputError
from truepair.methods import METHODS
from truepair.seeding import torch_seeded
from truepair.training.config import TrainingConfig, build_optimizer
from truepair.training.pair_table import read_pair_table
from truepair.training.setup import Setup

SETTINGS = {"epochs": 4, "batch_size": 24, "learning_rate": 5e-3, "seed": 7, "minimum_count": 1}
DRIVEN = {
    "crcl": {"pieces": ()},
    "crcl with a piece": {"pieces": (3,)},
    "gsc": {},
    "infonce": {},
    "rcl": {},
    "rince": {},
    "triplet": {},
}
BELIEF = {"crcl": "memory_label", "gsc": "memory_label"}


def foreign_loop(pairs, method, options):
    """A plain loop of torch around the engine of a run, with a criterion as its loss: (mean loss an epoch, criterion).

    The same initialisation and order as a run has; everything else is written out here.
    """
    setup = Setup(model=GlobalConfig(width=16, word_width=8)).with_training(SETTINGS).with_preparation(pairs)
    training = TrainingConfig(**SETTINGS)
    criterion = truepair.Criterion(method, pairs=len(pairs), epochs=training.epochs, **options)
    losses, epoch = [], 0
    for stage, length in enumerate(stage.epochs for stage in criterion.stages):
        assert criterion.starts_afresh == (stage > 0)
        with torch_seeded(training.seed, "initialise", stage):
            engine = build_engine(setup.model, setup.preparation.sizes, Needs())
        optimizer = build_optimizer(training, [(list(engine.parameters()), 1.0)], SETTINGS["learning_rate"])
        for epoch in range(1, length + 1):
            last = stage == len(criterion.stages) - 1
            for group in optimizer.param_groups:
                group["lr"] = SETTINGS["learning_rate"] * training.decay_at(
                    epoch, training.decay_epoch if last else None
                )
            total, order = 0.0, EpochBatches(pairs, setup.preparation, batch_size=24, position=(7, stage, epoch))
            engine.train()
            for step in range(len(order)):
                batch = order[step]
                with torch_seeded(7, "step", stage, epoch, step):
                    images, texts = engine.encode_images(batch.images), engine.encode_texts(batch.texts)
                    loss = criterion(3 * images, texts, batch.ids)  # whatever their length
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(engine.parameters(), training.clip)
                optimizer.step()
                total += loss.item() * len(batch.ids)
            losses.append(total / len(pairs))
            criterion.end_epoch()
    assert criterion.finished
    return losses, criterion


@pytest.mark.parametrize("case", DRIVEN)
def test_a_loop_of_ones_own_has_the_numbers_of_training(case, tiny, tmp_path):
    method, options = case.split()[0], DRIVEN[case]
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=3)
    run = truepair.fit(
        pairs,
        method=truepair.build_method(method, options),
        out=tmp_path / "run",
        setup=Setup(model=GlobalConfig(width=16, word_width=8)),
        **SETTINGS,
    )
    losses, criterion = foreign_loop(pairs.without_truth(), method, options)
    assert losses == pytest.approx([line["loss"] for line in run.metrics], rel=1e-6)
    table = read_pair_table(run.folder.pairs)
    labels = torch.tensor(table.column(BELIEF.get(method, "memory_seen_probability")).to_pylist())
    assert labels.std() > 1e-3  # something was learned of the pairs
    torch.testing.assert_close(criterion.belief, labels, rtol=0, atol=1e-6)
    assert criterion.taken_as_matched.tolist() == [not flagged for flagged in table.column("flagged").to_pylist()]


def vectors(count=12, width=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, generator=generator), torch.randn(count, width, generator=generator)


def test_infonce_is_the_loss_of_clip():
    images, texts = vectors()
    scale = torch.tensor(2.0).exp().requires_grad_()
    loss = truepair.Criterion("infonce", pairs=12, epochs=1)(images, texts, range(12), scale=scale)
    logits = scale * normalize(images) @ normalize(texts).T
    target = torch.arange(12)
    expected = (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2
    torch.testing.assert_close(loss, expected)
    (found,), (wanted,) = (torch.autograd.grad(value, scale, retain_graph=True) for value in (loss, expected))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("method", "options"),
    [("infonce", {}), ("infonce", {"temperature": 0.5}), ("rcl", {"temperature": 0.2}), ("rince", {"exponent": 1.0})],
)
@pytest.mark.parametrize("scale", [5.0, 20.0, 100.0])
def test_belief_is_by_the_scale_and_the_loss_stays_finite(method, options, scale):
    images, texts = vectors()
    criterion = truepair.Criterion(method, pairs=12, epochs=1, **options)
    cosines = torch.tensor(scale).requires_grad_()
    criterion(images.requires_grad_(), texts, range(12), scale=cosines).backward()
    assert torch.isfinite(images.grad).all() and images.grad.abs().max() < scale and torch.isfinite(cosines.grad)
    logits = scale * normalize(images.detach()) @ normalize(texts).T
    expected = (logits.softmax(dim=1).diagonal() + logits.softmax(dim=0).diagonal()) / 2
    torch.testing.assert_close(criterion.belief, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", ["infonce", "crcl", "gsc"])
def test_a_scale_replaces_the_temperature(method):
    images, texts = vectors()
    criterion = truepair.Criterion(method, pairs=12, epochs=3)
    own = 1 / criterion.method.similarity_temperature
    losses = [truepair.Criterion(method, pairs=12, epochs=3)(images, texts, range(12), scale=s) for s in (None, own, 9)]
    torch.testing.assert_close(losses[0], losses[1])
    assert abs(losses[2] - losses[0]) > 0.01


def epoch(criterion, number, *, batches=(slice(0, 7), slice(7, 12))):
    images, texts = vectors(seed=number)
    return [criterion(images[part], texts[part], torch.arange(12)[part]).item() for part in batches]


@pytest.mark.parametrize("method", ["crcl", "gsc", "infonce"])
@pytest.mark.parametrize("stored", ["torch", "safetensors", "within a model"])
def test_the_state_goes_on_exactly_even_within_an_epoch(method, stored):
    made = {"pairs": 12, "epochs": 6}
    whole, first = truepair.Criterion(method, **made), truepair.Criterion(method, **made)
    for number in range(3):
        epoch(whole, number), epoch(first, number)
        whole.end_epoch(), first.end_epoch()
    cut = {"batches": [slice(0, 7)]}
    epoch(whole, 3, **cut), epoch(first, 3, **cut)
    second = truepair.Criterion(method, **made)
    if stored == "safetensors":
        second.load_state_dict(load(save(first.state_dict())))
    elif stored == "torch":
        file = io.BytesIO()
        torch.save(first.state_dict(), file)
        file.seek(0)
        second.load_state_dict(torch.load(file, weights_only=True))
    else:
        model = torch.nn.ModuleDict({"head": torch.nn.Linear(2, 2), "loss": first})
        other = torch.nn.ModuleDict({"head": torch.nn.Linear(2, 2), "loss": second})
        other.load_state_dict(model.state_dict())
    assert second.state_dict().keys() == first.state_dict().keys()
    rest = {"batches": [slice(7, 12)]}
    assert epoch(whole, 3, **rest) == epoch(second, 3, **rest)
    assert whole.end_epoch() == second.end_epoch()
    assert epoch(whole, 4) == epoch(second, 4)
    assert torch.equal(whole.belief, second.belief)


def test_a_state_of_another_criterion_is_refused():
    state = truepair.Criterion("crcl", pairs=12, epochs=6).state_dict()
    for changed, message in (
        ({"pairs": 13}, "pairs 12, this one has 13"),
        ({"momentum": 0.5}, "momentum 0.8, this one has 0.5"),
        ({"epochs": 7}, "stages"),
    ):
        with pytest.raises(InputError, match=message):
            truepair.Criterion("crcl", **{"pairs": 12, "epochs": 6, **changed}).load_state_dict(state)
    with pytest.raises(InputError, match="method 'crcl', this one has 'gsc'"):
        truepair.Criterion("gsc", pairs=12, epochs=6).load_state_dict(state)
    with pytest.raises(InputError, match="lacks"):
        truepair.Criterion("crcl", pairs=12, epochs=6).load_state_dict({})


def test_in_evaluation_nothing_is_remembered_and_pairs_count_as_matched():
    criterion, (images, texts) = truepair.Criterion("crcl", pairs=12, epochs=6), vectors(4)
    for number in range(4):
        epoch(criterion, number)
        criterion.end_epoch()
    before = {name: tensor.clone() for name, tensor in criterion.state_dict().items()}
    found = criterion.eval()(images, texts)
    assert all(torch.equal(before[name], tensor) for name, tensor in criterion.state_dict().items())
    fresh = truepair.Criterion("crcl", pairs=4, epochs=3)(images, texts, range(4))
    torch.testing.assert_close(found, fresh)


def test_few_batches_are_told_and_none_is_refused(caplog):
    criterion = truepair.Criterion("infonce", pairs=100, epochs=2)
    epoch(criterion, 0)
    assert criterion.end_epoch()["seen"] == pytest.approx(0.12)
    assert "12 of 100 pairs were seen in epoch 1" in caplog.text
    with pytest.raises(InputError, match="end_epoch: no batch was seen"):
        criterion.end_epoch()
    epoch(criterion, 1)
    criterion.end_epoch()
    with pytest.raises(InputError, match="made for 2 epochs, and all are over"):
        epoch(criterion, 2)


def test_a_model_that_learned_too_little_is_told_of(caplog):
    """All p̂ are about 1/64 when CRCL first makes labels of them: no pair is left to learn from."""
    criterion = truepair.Criterion("crcl", pairs=64, epochs=4, freeze_epochs=1)
    images, texts = vectors(64, 500)
    for _ in range(2):
        assert "taken as matched" not in caplog.text
        criterion(images, texts, range(64))
        criterion.end_epoch()
    assert "% of the pairs are taken as matched in epoch 2: the model had learned too little" in caplog.text


def changed(tensor, value, row=2):
    tensor = tensor.clone()
    tensor[row, 1] = value
    return tensor


IMAGES, TEXTS = vectors()


@pytest.mark.parametrize(
    ("images", "texts", "ids", "message"),
    [
        (IMAGES, TEXTS, None, "ids are missing"),
        (IMAGES, TEXTS, range(11), "expected 12 whole numbers"),
        (IMAGES, TEXTS, torch.rand(12), "float32"),
        (IMAGES, TEXTS, range(1, 13), "id 12 is not in 0 … 11"),
        (IMAGES, TEXTS, range(-1, 11), "id -1 is not in 0 … 11"),
        (IMAGES, TEXTS, [0, *range(11)], "id 0 comes twice in one batch"),
        (changed(IMAGES, torch.nan), TEXTS, range(12), "image_features: row 2 of the batch is not finite"),
        (IMAGES, changed(TEXTS, torch.inf, row=5), range(12), "text_features: row 5"),
        (IMAGES[:, :4], TEXTS, range(12), "image features have width 4, text features 5"),
        (IMAGES[:5], TEXTS, range(12), "5 image features and 12 text features"),
        (IMAGES[:1], TEXTS[:1], [0], "a batch of one pair"),
        (IMAGES[:, None], TEXTS, range(12), "expected a float tensor \\(B, D\\)"),
        (IMAGES.long(), TEXTS, range(12), "expected a float tensor \\(B, D\\)"),
    ],
)
def test_bad_batches_are_refused_and_leave_nothing(images, texts, ids, message):
    criterion = truepair.Criterion("crcl", pairs=12, epochs=3)
    with pytest.raises(InputError, match=message):
        criterion(images, texts, ids)
    assert not criterion.seen.any() and not criterion.started
    assert torch.equal(criterion.belief, torch.ones(12))


def test_a_pair_comes_once_an_epoch():
    criterion = truepair.Criterion("infonce", pairs=12, epochs=3)
    epoch(criterion, 0)
    with pytest.raises(InputError, match="id 0 was seen in this epoch already; call end_epoch"):
        epoch(criterion, 1)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), torch.ones(3)])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(InputError, match="expected one finite number above 0"):
        truepair.Criterion("infonce", pairs=12, epochs=3)(IMAGES, TEXTS, range(12), scale=scale)


def test_a_loss_without_temperature_refuses_a_scale():
    with pytest.raises(InputError, match="triplet compares cosines themselves"):
        truepair.Criterion("triplet", pairs=12, epochs=3)(IMAGES, TEXTS, range(12), scale=10.0)


WHY = {
    "mscn": ({}, "learns from pairs that are known to match"),
    "npc": ({}, "looks at other pairs beside"),
    "gsc with co_train": ({"co_train": True}, "trains 2 networks that teach each other"),
    "truepair": ({}, "taught by an average of its network's weights"),
    "ugncl": ({}, "compares 2 views of each image"),
    "decl": ({}, "reads all pairs before an epoch"),
    "ncr": ({}, "trains 2 networks that teach each other"),
    "bicro": ({}, "trains 2 networks that teach each other"),
    "l2rm": ({}, "reads all pairs before an epoch"),
    "osa": ({}, "reads all pairs before an epoch"),
    "in2r": ({}, "trains 2 networks that teach each other"),
    "rcsl": ({}, "looks at other pairs beside"),
    "rcsl with remembered partners": ({"partners": "remembered"}, "reads all pairs before an epoch"),
    "disncl": ({}, "heads and discriminators of its own"),
    **{name: ({}, "learns from class labels") for name in ("ce", "mrl", "elr-cmr", "uot-rcl")},
}


def test_every_method_is_driven_or_refused_with_a_reason():
    assert {name.split()[0] for name in (*DRIVEN, *WHY)} == set(METHODS)


@pytest.mark.parametrize("case", WHY)
def test_methods_that_need_more_are_refused(case):
    options, why = WHY[case]
    with pytest.raises(InputError, match=why):
        truepair.Criterion(case.split()[0], pairs=100, epochs=30, **options)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"pairs": 1}, "pairs is 1; expected a whole number, at least 2"),
        ({"pairs": 3.5}, "pairs is 3.5"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": 2}, "needs more epochs than the 2 with frozen labels"),
        ({"speed": 3}, "no option 'speed'"),
        ({"method": "clip"}, "expected one of"),
    ],
)
def test_bad_options_are_refused(made, message):
    with pytest.raises(InputError, match=message):
        truepair.Criterion(**{"method": "crcl", "pairs": 12, "epochs": 6, **made})


def test_half_precision_features_are_compared_in_float32():
    criterion = truepair.Criterion("infonce", pairs=12, epochs=3)
    found = criterion(IMAGES.bfloat16(), TEXTS.bfloat16(), range(12))
    fresh = truepair.Criterion("infonce", pairs=12, epochs=3)
    expected = fresh(IMAGES.bfloat16().float(), TEXTS.bfloat16().float(), range(12))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)


def test_what_it_was_made_with_is_its_own():
    criterion = truepair.Criterion("crcl", pairs=12, epochs=6, pieces=(3, 4))
    assert criterion.all_epochs == 13 and "crcl, pairs=12, epochs=13" in repr(criterion)
    assert not list(criterion.parameters())
    assert replace(criterion.method.config, pieces=()) == truepair.Criterion("crcl", pairs=12, epochs=6).method.config
