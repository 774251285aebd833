"""Tiny CLIP and SigLIP trained by every method of pairs: frozen, by LoRA, and as a whole."""

import importlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

import truepair
from tests.encoders.tiny_models import write_model
from tests.training.test_resume import Stop, assert_same_run, stopped_after
from truepair.cli.main import main
from truepair.encoders import encoder_of
from truepair.encoders.hf.model import Opened, Shape
from truepair.engines.pretrained.config import PretrainedConfig
from truepair.engines.pretrained.engine import PretrainedEngine
from truepair.engines.pretrained.preparation import Base
from truepair.errors import InputError
from truepair.methods import METHODS, build_method, learns_from_labels
from truepair.training import loop
from truepair.training.setup import Setup

METHOD_OPTIONS = {
    "crcl": {"pieces": (3,)},
    "truepair": {"pieces": (3,)},
    "gsc": {"co_train": True},
    "ugncl": {"warm_up_epochs": 1},
    "decl": {"warm_up_epochs": 1},
    "ncr": {"warm_up_epochs": 1},
    "bicro": {"warm_up_epochs": 1},
    "l2rm": {"warm_up_epochs": 1},
    "rcsl": {"warm_up_epochs": 1},
    "mscn": {"warm_up_epochs": 1, "head_width": 5},
    "disncl": {"warm_up_epochs": 1, "subspace_width": 6, "hidden_width": 8, "least_clean": 0.0},
}
PAIRS = 24

pytestmark = [
    pytest.mark.filterwarnings("ignore::truepair.encoders.hf.tokens.CaptionsCut"),
    pytest.mark.usefixtures("few_drawings"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def data():
    train = truepair.inject_noise(truepair.load("scenes:12").take(np.arange(PAIRS)).compact(), 0.3, seed=0)
    return train, truepair.load("scenes:8:5")


def fit(data, model, out, method="infonce", *, tune="heads", engine=None, **more):
    train, dev = data
    if method == "mscn":  # which wants pairs that are known to match
        train = replace(train, trusted=np.arange(PAIRS) < 20)
    setup = Setup(model=PretrainedConfig(encoder=str(model), tune=tune, **(engine or {})))
    options = {"epochs": 2, "batch_size": 12, "progress": False, "learning_rate": 1e-3, **more}
    made = build_method(method, METHOD_OPTIONS.get(method))
    return truepair.fit(train, dev=dev, method=made, out=out, setup=setup, **options)


@pytest.mark.parametrize("name", ["npc", "osa"])
def test_the_presets_for_pretrained_models_train_the_whole_model(models, data, tmp_path, name):
    """NPC and OSA as printed, but for the lengths: no warm-up, the model's own opinion from the first step on."""
    printed = truepair.as_printed(name)
    training = replace(printed.setup.training, epochs=2, batch_size=12, learning_rate=1e-3)
    model = replace(printed.setup.model, encoder=str(models["clip"]))
    setup = replace(printed.setup, training=training, model=model)
    train, dev = data
    run = truepair.fit(train, dev=dev, method=printed.method, out=tmp_path / "run", setup=setup, progress=False)
    assert run.folder.read_config()["method"]["options"] == asdict(printed.method.config)
    assert model.tune == "full" and printed.method.config.warm_up_epochs == 0
    before, after = (encoder_of(str(place)) for place in (models["clip"], run.path / "pretrained"))
    assert not torch.allclose(cosines(before, dev), cosines(after, dev), atol=1e-4)
    weights = load_file(run.folder.model)
    assert any("vision" in place for place in weights) and any("text" in place for place in weights)
    believed = pq.read_table(run.folder.pairs)["p_match"].to_numpy()
    assert len(believed) == PAIRS and ((believed >= 0) & (believed <= 1)).all() and np.ptp(believed) > 0


CASES = [("clip", "heads", name) for name in METHODS if not learns_from_labels(name)]
CASES += [("clip", "lora", "crcl"), ("clip", "full", "gsc"), ("clip", "lora", "truepair"), ("clip", "lora", "ugncl")]
CASES += [("clip", "full", "truepair")]  # whose teachers share the frozen temperature
CASES += [("siglip", "heads", "infonce"), ("siglip", "lora", "disncl"), ("siglip", "full", "infonce")]


@pytest.mark.parametrize(("kind", "tune", "method"), CASES)
def test_it_learns_and_is_kept_as_a_run_and_as_a_folder_of_transformers(models, data, tmp_path, kind, tune, method):
    run = fit(data, models[kind], tmp_path / "run", method, tune=tune, epochs=3 if method == "crcl" else 2)
    dev = data[1]
    assert truepair.evaluate(run.model, dev) == run.result["dev"]
    published = encoder_of(str(run.path / "pretrained"))
    assert published.opened.kind == kind
    if method in ("crcl", "infonce"):  # no networks, views or heads beside the model's own
        assert torch.allclose(
            cosines(published, dev), run.model.similarity(dev), atol=2e-3 if tune == "heads" else 1e-5
        )
        assert not torch.allclose(cosines(published, dev), cosines(encoder_of(str(models[kind])), dev), atol=1e-4)
    two = build_method(method, METHOD_OPTIONS.get(method)).networks == 2
    assert (run.path / "pretrained-b").is_dir() == two
    card = (run.path / "pretrained" / "README.md").read_text()
    assert f"method: {method}" in card and "24 training pairs" in card and "mismatched" in card and "rsum" in card
    trained = load_file(run.folder.model)
    assert len(trained) > 0
    if tune == "lora":
        shape = encoder_of(str(models[kind])).opened.shape
        last = {f"{name}.weight" for name in (shape.image_head, shape.text_head) if name is not None}
        others = {name.partition("towers.")[2] for name in trained if "towers." in name and "lora_" not in name}
        assert {name for name in others if not name.endswith(".bias")} == last
        before, after = (load_file(Path(path, "model.safetensors")) for path in (models[kind], run.path / "pretrained"))
        assert not any(torch.allclose(before[name], after[name], atol=1e-6) for name in last)


def cosines(encoder, pairs):
    """Of all images and texts, by the encoder alone."""
    rows = range(len(pairs.images))
    sides = (
        encoder.encode([pairs.images.prepared(row, encoder) for row in rows])[:, 0],
        encoder.encode_texts(pairs.texts.captions),
    )
    images, texts = (torch.nn.functional.normalize(torch.from_numpy(side), dim=1) for side in sides)
    return images @ texts.T


@pytest.mark.parametrize(("kind", "tune"), [("clip", "heads"), ("siglip", "lora"), ("clip", "full")])
def test_training_begins_with_the_model_as_it_is(models, data, tmp_path, kind, tune):
    run = fit(data, models[kind], tmp_path / "run", tune=tune, epochs=1, learning_rate=1e-12)
    expected = cosines(encoder_of(str(models[kind])), data[1])
    assert torch.allclose(run.model.similarity(data[1]), expected, atol=2e-3 if tune == "heads" else 1e-5)


@pytest.fixture(scope="module")
def with_dropout(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("dropout") / "clip", dropout=0.3)


@pytest.mark.parametrize(
    ("method", "tune", "more", "engine", "batches"),
    [
        ("crcl", "heads", {}, {}, 1),
        ("crcl", "heads", {}, {}, 7),
        ("crcl", "lora", {"warm_up": 0.3, "schedule": "cosine"}, {"lora_dropout": 0.2, "lora_rank": 2}, 5),
        ("crcl", "full", {"piece_size": 5}, {"checkpointing": True}, 3),
        ("truepair", "full", {}, {}, 9),
    ],
)
def test_it_resumes_exactly(with_dropout, data, tmp_path, monkeypatch, method, tune, more, engine, batches):
    def start(out, **again):
        return fit(data, with_dropout, out, method, tune=tune, engine=engine, epochs=3, **more, **again)

    expected = start(tmp_path / "whole")
    with stopped_after(monkeypatch, batches):
        start(tmp_path / "run")
    resumed = start(tmp_path / "run", resume=True)
    assert_same_run(resumed.path, expected.path, texts=("metrics.jsonl", "result.json", "pretrained/README.md"))
    both = (load_file(run.path / "pretrained" / "model.safetensors") for run in (resumed, expected))
    ours, theirs = both
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.fixture(scope="module")
def plain(models, data, tmp_path_factory):
    return fit(data, models["clip"], tmp_path_factory.mktemp("plain") / "run", tune="full")


@pytest.mark.parametrize(("more", "engine"), [({"piece_size": 5}, {}), ({}, {"checkpointing": True})])
def test_pieces_and_checkpointing_change_no_number(models, data, tmp_path, plain, more, engine):
    other = fit(data, models["clip"], tmp_path / "other", tune="full", engine=engine, **more)
    found = [[line["loss"] for line in run.metrics] for run in (plain, other)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert torch.allclose(plain.model.similarity(data[1]), other.model.similarity(data[1]), atol=1e-5)


def test_bf16_is_near_and_ends_in_float32(models, data, tmp_path, plain):
    run = fit(data, models["clip"], tmp_path / "run", tune="full", precision="bf16")
    losses = [each.metrics[0]["loss"] for each in (plain, run)]
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], rel=0.02)
    kept = load_file(run.folder.model).values()
    assert {tensor.dtype for tensor in kept if tensor.is_floating_point()} == {torch.float32}


def test_a_second_network_begins_the_same_whatever_the_order_of_a_set(models, monkeypatch):
    config = PretrainedConfig(encoder=str(models["clip"]), tune="full")
    opened = config.open()
    made = []
    for heads in (("text_projection", "visual_projection"), ("visual_projection", "text_projection")):
        engine = PretrainedEngine(config, Base(opened, opened.shape))
        assert engine._head_names() == set(heads)
        monkeypatch.setattr(engine, "_head_names", lambda heads=heads: dict.fromkeys(heads))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            engine.vary()
        made.append(engine.state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def test_towers_have_a_rate_of_their_own(models, data, tmp_path):
    """With a tower rate of nearly nothing only the last layers move."""
    run = fit(data, models["clip"], tmp_path / "run", tune="full", engine={"tower_rate": 1e-9}, weight_decay=0.0)
    before, after = (load_file(path / "model.safetensors") for path in (models["clip"], run.path / "pretrained"))
    moved = {name for name in before if not torch.allclose(before[name], after[name], atol=1e-6)}
    assert moved == {"visual_projection.weight", "text_projection.weight"}


def test_the_published_folder_is_read_by_sentence_transformers(models, data, tmp_path, plain):
    from PIL import Image
    from sentence_transformers import SentenceTransformer

    dev = data[1]
    for kind in models:
        run = plain if kind == "clip" else fit(data, models[kind], tmp_path / kind, tune="full", epochs=1)
        model = SentenceTransformer(str(run.path / "pretrained"), device="cpu")
        captions = ["a red circle", "two of the blue", "a red circle of many blue circles " * 5]  # the last is cut
        expected = encoder_of(str(run.path / "pretrained"))
        assert np.allclose(model.encode(captions), expected.encode_texts(captions), atol=1e-5)
        pixels = dev.images.pictures[0]
        found = model.encode([Image.fromarray(pixels)])
        assert np.allclose(found, expected.encode([expected.prepare(pixels)])[:, 0], atol=1e-5)


def test_frozen_vectors_are_kept(models, data, tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    first = fit(data, models["clip"], tmp_path / "first")
    kept = sorted((tmp_path / "cache").iterdir())
    assert len(kept) == 2  # the captions of two splits; images in memory have no file to know them by
    monkeypatch.setattr("truepair.encoders.hf.encoder.PretrainedEncoder.encode_texts", None)
    assert_same_run(fit(data, models["clip"], tmp_path / "again").path, first.path, texts=("metrics.jsonl",))


def test_what_cannot_be_trained_is_refused(models, data, tiny, tmp_path):
    with pytest.raises(InputError, match="needs --encoder FOLDER"):
        fit(data, "", tmp_path / "run")
    with pytest.raises(InputError, match="trains a transformers model of images and texts; windows is none"):
        fit(data, "windows", tmp_path / "run")
    with pytest.raises(InputError, match="features and no pixels"):
        fit((truepair.load(tiny), None), models["clip"], tmp_path / "run")
    opened = Opened(models["siglip"])
    with pytest.raises(InputError, match="neither tower ends in a linear layer"):
        PretrainedEngine(PretrainedConfig(encoder=str(models["siglip"])), Base(opened, Shape(16, None, None)))


@pytest.mark.parametrize(
    ("tune", "option", "value"),
    [("heads", "tower_rate", 0.5), ("heads", "checkpointing", True), ("full", "lora_rank", 4)],
)
def test_options_without_effect_are_refused(tune, option, value):
    with pytest.raises(InputError, match=f"--{option.replace('_', '-')} has no effect on --tune {tune}"):
        PretrainedConfig(tune=tune, **{option: value})


def test_a_run_of_another_model_is_refused(models, data, tmp_path):
    model = shutil.copytree(models["clip"], tmp_path / "model")
    runs = {tune: fit(data, model, tmp_path / tune, tune=tune, epochs=1) for tune in ("lora", "full")}
    expected = runs["full"].model.similarity(data[1])
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "initializer_factor": 2.0}))
    with pytest.raises(InputError, match=r"put back the model as it was.*pretrained/"):
        _ = runs["lora"].model
    assert torch.equal(runs["full"].model.similarity(data[1]), expected)  # it has all of its weights


@pytest.mark.parametrize("tune", ["lora", "full"])
def test_models_kept_in_half_precision_are_trained_and_read_again_in_float32(models, data, tmp_path, tune):
    from transformers import AutoModel

    half = shutil.copytree(models["clip"], tmp_path / "model")
    AutoModel.from_pretrained(half).half().save_pretrained(half)
    assert json.loads((half / "config.json").read_text())["dtype"] == "float16"
    run = fit(data, half, tmp_path / "run", tune=tune)
    kept = load_file(run.folder.model)
    read = run.model.engine.state_dict()
    assert all(torch.equal(read[name], tensor) and tensor.dtype == torch.float32 for name, tensor in kept.items())
    assert truepair.evaluate(run.model, data[1]) == run.result["dev"]


def test_on_the_command_line(models, tmp_path, monkeypatch, capsys):
    """Trained, stopped, continued, evaluated and audited by name."""
    train = ["train", "scenes:8", "--model", "pretrained", "--encoder", str(models["clip"]), "--method", "infonce"]
    train += ["--epochs", "2", "--score-images", "4", "--batch-size", "20", "--quiet", "--out", str(tmp_path / "run")]
    train_batch, done = loop.Training._train_batch, []

    def dying(self, *arguments):
        done.append(1)
        if len(done) == 2:
            raise Stop
        return train_batch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", dying)
        with pytest.raises(Stop):
            main([*train, "--tune", "lora"])
    assert main(["train", "--resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "scenes:8", "--images", "4"]) == 0
    assert "R@1" in capsys.readouterr().out
    for refused, said in (
        (["--word-share", "0.1"], "--word-share is for engines of regions and words"),
        (["--tune", "heads", "--model", "global"], "--tune is an option of --model pretrained"),
    ):
        assert main([*train, *refused]) == 2
        assert said in capsys.readouterr().err


def test_the_example_of_lora_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples"))
    published = importlib.import_module("lora_training").main("scenes:8", epochs=3, out=str(tmp_path))
    assert (published / "README.md").is_file()
    assert "CLIPModel" in capsys.readouterr().out
