"""The figures of disbelieved pairs: ranks and proposals are those of plain loops, and what cannot be drawn is said."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import truepair
from truepair.data.config import DataConfig
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.methods.truepair.method import TruePair
from truepair.reproduce.figures import of_proposals
from truepair.reproduce.figures.of_disbelieved import image_ranks, ranks_of_disbelieved, teacher_of
from truepair.reproduce.figures.of_proposals import SHARES, drawn_precision, precision_of_proposals, proposals
from truepair.training.config import TrainingConfig
from truepair.training.jobs import Job, train_job
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

SOURCE = "scenes:60"


def trained(out, method="truepair", noise=0.4, seed=0, **options):
    setup = Setup(model=GlobalConfig(width=8, word_width=8), training=TrainingConfig(epochs=1, seed=seed))
    return RunFolder(train_job(Job(DataConfig(SOURCE, noise=noise), method, options, setup), out, progress=False).path)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A run of our method that disbelieves every third pair, whatever it has learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TruePair, "credit_of", lambda self, label, synthetic: (torch.arange(len(label)) % 3 > 0).float())
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


def test_the_teacher_is_what_the_stage_before_left(ours):
    kept = load_file(ours.checkpoint)
    for name, tensor in teacher_of(ours).engine.state_dict().items():
        assert torch.equal(tensor, kept[f"auxiliary/before.0.{name}"])


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


def proposal_by_a_loop(model, pairs, pool, pair):
    """p of the most probable caption for the image of a pair among those of the pool that others came with."""
    similarity = model.similarity(pairs)[pairs.image_index[pair]].double()
    others = [place for place, other in enumerate(pool) if pairs.image_index[other] != pairs.image_index[pair]]
    scores = np.array([float(similarity[pairs.text_index[pool[place]]]) for place in others])
    weights = np.exp(scores / 0.05)
    return weights.max() / weights.sum(), others[int(scores.argmax())]


def test_proposals_are_those_of_a_plain_loop(ours):
    pairs, model = noisy_pairs(), teacher_of(ours)
    disbelieved = np.arange(len(pairs)) % 3 == 0
    pool = np.flatnonzero(disbelieved)
    probability, caption = proposals(model, pairs, disbelieved, 0.05)
    assert len(probability) == len(caption) == len(pool)
    for place in range(0, len(pool), 5):
        largest, of = proposal_by_a_loop(model, pairs, pool, pool[place])
        assert probability[place] == pytest.approx(largest, rel=1e-4) and caption[place] == of


def test_precision_is_of_the_surest_proposals():
    draws = np.random.default_rng(0)
    probability, right = draws.random(40), draws.random(40) < 0.4
    shown = drawn_precision(probability, right, {"of": 90}).numbers
    surest = sorted(range(40), key=lambda place: -probability[place])
    for number, share in enumerate(SHARES):
        chosen = surest[: max(1, round(share * 40))]
        assert shown["proposals"][number] == len(chosen)
        assert shown["right"][number] == pytest.approx(100 * np.mean(right[chosen]), abs=0.01)
        assert shown["expected by the teacher"][number] == pytest.approx(100 * np.mean(probability[chosen]), abs=0.01)
        assert shown["least probability"][number] == pytest.approx(min(probability[chosen]), abs=1e-4)
    assert shown["pairs"] == {"of": 90}


def test_a_proposal_is_right_where_its_caption_is_of_that_image(ours, monkeypatch):
    """The image of every second pair is proposed one of its captions, the others one of another image."""
    pairs = noisy_pairs()
    pool = np.flatnonzero(np.arange(len(pairs)) % 3 == 0)
    caption = np.array(
        [
            np.flatnonzero((pairs.true_image[pool] == pairs.image_index[pair]) == (place % 2 == 0))[0]
            for place, pair in enumerate(pool)
        ]
    )
    monkeypatch.setattr(of_proposals, "proposals", lambda *given: (np.full(len(pool), 0.5), caption))
    shown = precision_of_proposals({"ours": ours}, source=SOURCE).numbers
    assert shown["right"][-1] == pytest.approx(100 * np.mean(np.arange(len(pool)) % 2 == 0), abs=0.01)
    assert shown["pairs"] == {"disbelieved": len(pool), "of": len(pairs)}


def test_one_disbelieved_pair_alone_finds_nobody(ours):
    pairs = noisy_pairs()
    probability, caption = proposals(teacher_of(ours), pairs, np.arange(len(pairs)) == 3, 0.05)
    assert np.isfinite(probability).all() and caption.tolist() == [0]
