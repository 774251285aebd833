"""The figure of disbelieved pairs: ranks are those of a plain loop, and what cannot be drawn is said."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import truepair
from truepair.data.config import DataConfig
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.methods.truepair.method import TruePair
from truepair.reproduce.figures.of_disbelieved import image_ranks, ranks_of_disbelieved, teacher_of
from truepair.training.config import TrainingConfig
from truepair.training.jobs import Job, train_job
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup

SOURCE = "scenes:60"


def trained(out, method="truepair", noise=0.4, seed=0, **options):
    setup = Setup(model=GlobalConfig(width=8, word_width=8), training=TrainingConfig(epochs=1, seed=seed))
    return RunFolder(train_job(Job(DataConfig(SOURCE, noise=noise), method, options, setup), out, progress=False).path)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A run of our method that disbelieves every third pair, whatever it has learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TruePair, "credit_of", lambda self, label: (torch.arange(len(label)) % 3 > 0).float())
        return trained(tmp_path_factory.mktemp("runs") / "ours")


def noisy_pairs():
    return truepair.inject_noise(truepair.load(SOURCE), 0.4, seed=0)


def rank_by_a_loop(model, pairs, pair, image):
    similarity = model.similarity(pairs)[:, pairs.text_index[pair]]
    others = [other for other in set(pairs.image_index.tolist()) if other != image]
    return 1 + sum(float(similarity[other]) >= float(similarity[image]) for other in others)


def test_ranks_are_those_of_a_plain_loop(ours):
    pairs, model = noisy_pairs(), teacher_of(ours)
    of = np.arange(len(pairs)) % 7 == 0
    for images in (pairs.true_image, pairs.image_index):
        expected = [rank_by_a_loop(model, pairs, pair, images[pair]) for pair in np.flatnonzero(of)]
        assert image_ranks(model, pairs, of, images).tolist() == expected


def test_the_teacher_is_what_the_first_stage_left(ours):
    kept = load_file(ours.checkpoint)
    for name, tensor in teacher_of(ours).engine.state_dict().items():
        assert torch.equal(tensor, kept[f"auxiliary/before.{name}"])


def test_curves_are_of_the_disbelieved_pairs_of_the_first_run(ours, tmp_path):
    pairs = noisy_pairs()
    disbelieved = np.arange(len(pairs)) % 3 == 0
    drawn = ranks_of_disbelieved({"ours": ours, "other": trained(tmp_path / "o", "infonce")}, source=SOURCE)
    shown, wrong = drawn.numbers, disbelieved & pairs.mismatched
    assert shown["pairs"] == {
        "disbelieved": disbelieved.sum(),
        "mismatched": wrong.sum(),
        "mismatched of all": pairs.mismatched.sum(),
        "of": len(pairs),
    }
    assert [axes.get_xlabel().replace("\n", ": ") for axes in drawn.figure.axes] == [*shown][3:]
    for question, of, images in (
        ("mismatched pairs: rank of the true image", wrong, pairs.true_image),
        ("mismatched pairs: rank of the given image", wrong, pairs.image_index),
        ("matched pairs: rank of their image", disbelieved & ~pairs.mismatched, pairs.image_index),
    ):
        assert [*shown[question]] == ["ours, teacher", "ours, final", "other"]
        found = image_ranks(teacher_of(ours), pairs, of, images)
        curve = shown[question]["ours, teacher"]
        assert curve["pairs"] == of.sum() and curve["median"] == np.median(found)
        assert curve["at most"] == pytest.approx([100 * np.mean(found <= rank) for rank in shown["ranks"]], abs=1e-3)
        assert curve["first 5"] == pytest.approx(100 * np.mean(found <= 5), abs=0.01)


def test_what_cannot_be_drawn_is_said(ours, tmp_path):
    other = trained(tmp_path / "other", "infonce", seed=1)
    with pytest.raises(InputError, match="was trained on other pairs"):
        ranks_of_disbelieved({"ours": ours, "other": other}, source=SOURCE)
    with pytest.raises(RunFolderError, match="holds no teacher"):
        teacher_of(other)
    with pytest.raises(InputError, match="the truth is not known"):
        ranks_of_disbelieved({"ours": trained(tmp_path / "clean", noise=0.0)}, source=SOURCE)
