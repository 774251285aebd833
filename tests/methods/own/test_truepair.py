"""Our own method: what is CRCL's is CRCL's, the average is a plain loop's, and who teaches whom, and when."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import truepair
from tests.methods.own.given import CREDIT, IDS, LAST, QUICK, SMALL, GivenForward, fit, prepared, similarity_of
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.engines.config import SGRConfig
from truepair.errors import InputError
from truepair.losses import active_complementary, batch_distillation
from truepair.methods import build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.ablation import NOTHING, PARTS
from truepair.methods.truepair.teacher import AuxiliaryTeachers
from truepair.training import fit as training_fit
from truepair.training.setup import Setup


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
