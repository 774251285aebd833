"""What pairs and what is made of them say of themselves: one short line, however many there are."""

from dataclasses import replace

import numpy as np
import pytest

import truepair
from truepair.data.noise import inject_noise
from truepair.data.pairs import Images, Pairs, Texts

pytestmark = pytest.mark.usefixtures("few_drawings")


def many(count: int = 5000) -> Pairs:
    rows = np.arange(count)
    names = tuple(map(str, range(count)))
    return Pairs(Images(np.zeros((count, 3, 2), np.float32), names), Texts(names, names), rows, rows, name="my_data")


def test_thousands_of_pairs_are_one_line() -> None:
    pairs = many()
    assert repr(pairs) == "Pairs('my_data': 5,000 pairs of 5,000 images and 5,000 texts, image features 3 × 2 float32)"
    assert repr(pairs.images) == "Images(5,000 images, features 3 × 2 float32, no pixels)"
    assert repr(pairs.texts) == "Texts(5,000 texts, first '0')"


def test_what_else_is_known_is_said() -> None:
    pairs = many(4)
    labels = np.array([0, 1, 0, 1])
    told = replace(
        pairs,
        texts=replace(pairs.texts, features=np.zeros((4, 7), np.float16)),
        labels=labels,
        class_names=("x", "y"),
        true_labels=np.array([0, 1, 1, 1]),
        true_image=np.array([0, 1, 3, 2]),
        trusted=np.array([True, False, False, False]),
    )
    assert repr(told).endswith(
        "text features 7 float16, 2 classes, 25 % of the labels wrong, 50 % mismatched, 1 known to match)"
    )
    assert repr(replace(pairs, labels=labels * 0, class_names=("x",))).endswith(", 1 class)")


def test_a_long_caption_is_cut() -> None:
    said = repr(Texts(("word " * 100,), ("one",)))
    assert said.endswith("…')") and len(said) < 100


def test_a_source_tells_its_problems() -> None:
    pairs = truepair.open("scenes:3")
    assert repr(pairs) == "ScenesCollection('scenes/train': 15 pairs)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> truepair.Run:
    pairs = inject_noise(truepair.load("scenes:8"), 0.5, seed=0)
    setup = truepair.Setup(training=truepair.training.config.TrainingConfig(epochs=1))
    out = tmp_path_factory.mktemp("runs") / "one"
    return truepair.fit(pairs, dev=truepair.load("scenes:8", "dev"), method="infonce", setup=setup, out=out)


def test_a_run_tells_its_method_and_figures(run: truepair.Run) -> None:
    assert repr(run) == f"Run({str(run.path)!r}: infonce, 40 pairs, dev rSum {run.result['dev']['rsum']:.1f})"


def test_a_model_and_its_index_tell_their_size(run: truepair.Run) -> None:
    model = run.model
    parameters = sum(parameter.numel() for parameter in model.engine.parameters())
    assert repr(model) == f"RetrievalModel(global, {parameters:,} parameters, cpu)"
    assert repr(model.index(truepair.load("scenes:8"))) == "Index(8 images and 40 captions)"
    assert repr(truepair.EnsembleModel([model, model], names=["a", "b"])) == "EnsembleModel(a, b)"


def test_an_audit_tells_its_verdict(tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(500, 16))
    texts = images + 0.3 * rng.normal(size=images.shape)
    texts[:200] = texts[np.roll(np.arange(200), 1)]
    found = truepair.audit_embeddings(images, texts)
    assert repr(found).startswith("EmbeddingAudit(500 pairs, ") and len(repr(found)) < 120
    assert f"{found.flagged.sum()} flagged" in repr(found)
