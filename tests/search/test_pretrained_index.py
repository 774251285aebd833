"""The index of a model of images and texts, as it is and trained."""

import io

import numpy as np
import pytest

pytest.importorskip("transformers", reason="the extra hf is not installed: pip install 'truepair[hf]'")

import truepair
from tests.encoders.tiny_models import write_model
from truepair.encoders import encoder_of
from truepair.engines.pretrained.config import PretrainedConfig
from truepair.search.embedder import EncoderEmbedder
from truepair.search.index import build_index
from truepair.training.setup import Setup

pytestmark = pytest.mark.filterwarnings("ignore::truepair.encoders.hf.tokens.CaptionsCut")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "clip", "clip")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def scenes():
    return truepair.load("scenes:12")


def png(pixels):
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_an_encoder_as_it_is(clip, scenes, tmp_path):
    encoder = encoder_of(str(clip))
    index = build_index(EncoderEmbedder(encoder), scenes)
    words = scenes.texts.captions[4]
    text = encoder.encode_texts([words])[0]
    images = encoder.encode([scenes.images.prepared(row, encoder) for row in range(len(scenes.images))])[:, 0]
    cosines = images @ text / np.linalg.norm(images, axis=1) / np.linalg.norm(text)
    hits = index.search(words, k=5)
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines, reverse=True)[:5], abs=2e-3)
    kept = sorted(path.name for path in (tmp_path / "cache").iterdir())
    index.search("words that nobody wrote")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == kept  # no file a query
    same = index.search(png(scenes.images.pictures[3]), k=1, find="images")[0]
    assert same.score == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("tune", ["heads", "full"])
def test_a_trained_model(clip, scenes, tmp_path, tune):
    setup = Setup(model=PretrainedConfig(encoder=str(clip), tune=tune))
    run = truepair.fit(scenes, method="infonce", out=tmp_path / "run", setup=setup, epochs=1, progress=False)
    model, index = run.model, run.model.index(scenes)
    row = model.similarity(scenes).numpy()[:, 2]
    hits = index.find(index.by_row(2, "captions"), "images", 6)
    assert hits.scores == pytest.approx(np.sort(row)[::-1][:6], abs=2e-3)
    assert [hit.score for hit in index.search(scenes.texts.captions[2], k=6)] == pytest.approx(hits.scores, abs=2e-3)
    same = index.search(png(scenes.images.pictures[3]), k=1, find="images")[0]
    assert same.score == pytest.approx(1, abs=1e-3)
