"""`truepair import`: a released checkpoint becomes a run that scores as the released code does and can be evaluated."""

import argparse
import hashlib
import json

import numpy as np
import pytest
import torch

from tests.engines.released_global import ReleasedGlobal, crcl_global
from tests.engines.released_layout import (
    FEATURES,
    REGIONS,
    WIDTH,
    Released,
    TwoViews,
    decl,
    gsc_plus,
    ncr,
    sgraf,
    ugncl,
)
from truepair.cli.import_checkpoint import add_import
from truepair.cli.main import main
from truepair.data.open import load
from truepair.data.text import Vocabulary, tokenise
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs
from truepair.errors import InputError, RunFolderError
from truepair.training.fit import open_run
from truepair.training.importing import import_checkpoint, unreachable_words

WORDS = ("<pad>", "<start>", "<end>", "<unk>", ".", "a", "boat", "n't", "red", "blue", "horse", "is", "t-shirt", "two")
IMAGES, CAPTIONS = 6, 5


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "f30k_precomp_vocab.json"
    Vocabulary(WORDS).write(path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Five captions an image, of different lengths, with a word the vocabulary lacks."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    np.save(folder / "test_ims.npy", rng.normal(size=(IMAGES, REGIONS, FEATURES)).astype(np.float32))
    known = [word for word in WORDS[5:] if word != "n't"] + ["zebra"]
    captions = [" ".join(rng.choice(known, size=rng.integers(1, 7))) for _ in range(IMAGES * CAPTIONS)]
    (folder / "test_caps.txt").write_text("\n".join(captions) + "\n")
    return folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint_7.pth.tar"


def networks(kind, count=2):
    return [Released(kind, len(WORDS), seed=seed) for seed in range(count)]


def command(*arguments):
    """The command alone, as `truepair` will call it."""
    parser = argparse.ArgumentParser()
    add_import(parser.add_subparsers())
    options = parser.parse_args(["import", *map(str, arguments)])
    options.command(options)


def released_similarities(models, pairs):
    """Mean of σ(r) over the networks, with captions read as <start> words <end>."""
    ids = {word: number for number, word in enumerate(WORDS)}
    captions = [
        [ids["<start>"], *(ids.get(word, ids["<unk>"]) for word in caption.split()), ids["<end>"]]
        for caption in pairs.texts.captions
    ]
    features = torch.from_numpy(np.array(pairs.images.features, dtype=np.float32))
    return torch.stack([model.similarities(features, captions) for model in models]).mean(0)


@pytest.mark.parametrize("kind", ["sgr", "saf"])
@pytest.mark.parametrize("layout", [sgraf, ncr, gsc_plus])
def test_the_imported_run_scores_as_the_released_code(kind, layout, path, vocabulary, data, tmp_path):
    models = networks(kind, 1 if layout is sgraf else 2)
    torch.save(layout(*models), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "run")
    pairs = load(str(data), "test")
    model = open_run(tmp_path / "run").model
    expected = released_similarities(models, pairs)
    assert expected.shape == (IMAGES, IMAGES * CAPTIONS) and expected.std() > 0.1
    torch.testing.assert_close(model.similarity(pairs), expected, atol=1e-5, rtol=0)
    assert model.preparation.sizes == InputSizes(FEATURES, REGIONS, len(WORDS))
    assert model.needs == Needs(networks=len(models))


@pytest.mark.parametrize(("which", "index"), [("A", 0), ("B", 1)])
def test_one_network_of_two(which, index, path, vocabulary, data, tmp_path):
    models = networks("saf")
    torch.save(ncr(*models), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "run", "--which", which)
    pairs = load(str(data), "test")
    similarity = open_run(tmp_path / "run").model.similarity(pairs)
    torch.testing.assert_close(similarity, released_similarities([models[index]], pairs), atol=1e-5, rtol=0)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["imported"]["networks"] == [which]


@pytest.mark.parametrize(
    ("make", "layout", "name", "needs"),
    [
        (lambda: ReleasedGlobal(len(WORDS)), crcl_global, "global", Needs()),
        (lambda: TwoViews("sgr", len(WORDS)), ugncl, "sgr", Needs(views=2, view_temperature=0.1)),
        (lambda: TwoViews("saf", len(WORDS)), ugncl, "saf", Needs(views=2, view_temperature=0.1)),
    ],
)
def test_global_models_and_two_views_score_as_the_released_code(
    make, layout, name, needs, path, vocabulary, data, tmp_path
):
    model = make()
    torch.save(layout(model), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "run")
    pairs, run = load(str(data), "test"), open_run(tmp_path / "run")
    expected = released_similarities([model], pairs)
    assert expected.std() > 0.1
    torch.testing.assert_close(run.model.similarity(pairs), expected, atol=1e-5, rtol=0)
    assert (run.model.config.name, run.model.needs) == (name, needs)


def test_the_command_names_views_and_a_model_without_positions(path, vocabulary, tmp_path, capsys):
    torch.save(ugncl(TwoViews("saf", len(WORDS))), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "views")
    assert "SAF, one network (model), 2 views of an image; its authors note epoch 3" in capsys.readouterr().out
    torch.save(crcl_global(ReleasedGlobal(len(WORDS))), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "global")
    text = capsys.readouterr().out
    assert "GLOBAL, one network (model);" in text and "Takes any number of regions of width 7; knows 14 words" in text


@pytest.mark.parametrize("kind", ["sgr", "two views", "global"])
def test_evaluate_takes_the_run(kind, path, vocabulary, data, tmp_path):
    models, layout = {
        "sgr": (networks("sgr", 1), decl),
        "two views": ([TwoViews("sgr", len(WORDS))], ugncl),
        "global": ([ReleasedGlobal(len(WORDS))], crcl_global),
    }[kind]
    torch.save(layout(*models), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "run")
    figures = tmp_path / "figures.json"
    assert main(["evaluate", str(tmp_path / "run"), str(data), "--json", str(figures)]) == 0
    similarity = released_similarities(models, load(str(data), "test")).numpy()
    owner = np.repeat(np.arange(IMAGES), CAPTIONS)
    assert json.loads(figures.read_text())["t2i_r1"] == pytest.approx(100 * (similarity.argmax(0) == owner).mean())
    own = owner == np.arange(IMAGES)[:, None]
    # Strictly, since one caption stands twice in the data, and ties count against the model.
    first = np.where(own, similarity, -np.inf).max(axis=1) > np.where(own, -np.inf, similarity).max(axis=1)
    assert json.loads(figures.read_text())["i2t_r1"] == pytest.approx(100 * first.mean())


def test_the_folder_says_what_was_imported(path, vocabulary, tmp_path, capsys):
    torch.save(decl(*networks("sgr", 1)), path)
    run = import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run")
    assert sorted(file.name for file in run.path.iterdir()) == [
        "config.json", "model.safetensors", "result.json", "vocabulary.json",
    ]  # fmt: skip
    config = run.folder.read_config()
    assert config["imported"]["file"] == path.name
    assert config["imported"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert config["imported"]["source"]["opt"]["tau"] == 0.1
    assert config["sizes"] == {
        "feature_width": FEATURES, "regions": REGIONS, "vocabulary_size": len(WORDS), "views": 1, "networks": 1,
        "subspace_width": 0, "subspace_hidden": 0, "text_width": 0, "plain_heads": False,
        "view_temperature": 0.0, "head_width": 0,
    }  # fmt: skip
    assert (config["model"]["name"], config["model"]["width"], config["model"]["reasoning_steps"]) == ("sgr", WIDTH, 3)
    assert run.result["method"] == "imported" and run.result["imported"] == config["imported"]
    assert Vocabulary.read(run.folder.vocabulary) == Vocabulary(WORDS)


def test_the_command_says_what_it_did_and_how_captions_are_read(path, vocabulary, tmp_path, capsys):
    torch.save(ncr(*networks("saf")), path)
    command(path, "--vocabulary", vocabulary, "--out", tmp_path / "run")
    text = capsys.readouterr().out
    for expected in ["SAF, ensemble of two networks (A, B)", "epoch 3", "480.5", "4 regions of width 7", "14 words"]:
        assert expected in text
    assert "never read" not in text


def test_words_that_no_caption_is_read_as():
    assert unreachable_words(Vocabulary((*WORDS, "'s", "and/or", "<mask>"))) == ["and/or"]
    without = tuple(word for word in WORDS if word != ".")
    assert unreachable_words(Vocabulary((*without, "'s"))) == ["n't"]
    assert "'s" in tokenise("the horse's boat")


def test_a_vocabulary_of_another_size_is_refused_with_both_sizes(path, tmp_path):
    torch.save(decl(*networks("sgr", 1)), path)
    with pytest.raises(
        InputError, match=r"has 12 words, the word embedding of the checkpoint 14 rows.*f30k_precomp_vocab"
    ):
        import_checkpoint(path, vocabulary=Vocabulary(WORDS[:-2]), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_which_needs_two_networks(path, vocabulary, tmp_path):
    torch.save(decl(*networks("sgr", 1)), path)
    with pytest.raises(InputError, match="no network B: its `model` is a single one"):
        import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run", which="B")
    assert not (tmp_path / "run").exists()


def test_networks_of_different_kinds_come_one_by_one(path, vocabulary, tmp_path):
    torch.save(ncr(*networks("sgr", 1), *networks("saf", 1)), path)
    with pytest.raises(InputError, match="A is SGR with feature width 7.*B SAF.*--which"):
        import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run")
    assert import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run", which="B").path.is_dir()


def test_nothing_is_overwritten(path, vocabulary, tmp_path):
    torch.save(decl(*networks("saf", 1)), path)
    run = import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run")
    before = {file: file.read_bytes() for file in run.path.iterdir()}
    torch.save(decl(*networks("sgr", 1)), path)
    with pytest.raises(RunFolderError, match="already holds a run"):
        import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run")
    assert {file: file.read_bytes() for file in run.path.iterdir()} == before


def test_images_with_more_regions_are_refused_when_scored(path, vocabulary, tmp_path):
    torch.save(decl(*networks("saf", 1)), path)
    model = import_checkpoint(path, vocabulary=vocabulary, out=tmp_path / "run").model
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "test_ims.npy", np.ones((2, REGIONS + 1, FEATURES), dtype=np.float32))
    (tmp_path / "data" / "test_caps.txt").write_text("a boat\na horse\n")
    with pytest.raises(InputError, match="up to 5 regions, those of training 4"):
        model.similarity(load(str(tmp_path / "data"), "test"))
