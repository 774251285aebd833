"""The index of a source is computed once, and read from the folder of caches when the service starts again."""

import os
import time

import numpy as np
import pytest

import truepair
from truepair.search.embedder import EncoderEmbedder, GivenVectors
from truepair.serve.kept_index import kept_index, place

pytest.importorskip("fastapi", reason="the extra serve is not installed: pip install 'truepair[serve]'")


@pytest.fixture
def model_and_pairs(run, pictures, tmp_path, monkeypatch):
    """The embedder of a run and its pairs; a cache of its own, which keeps small indexes, too."""
    from truepair.engines.model_embedder import ModelEmbedder

    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("truepair.serve.kept_index.LEAST_KEPT", 0)
    return ModelEmbedder(truepair.open_run(run).model), truepair.load(pictures, encoder="windows")


def asked(embedder, pairs, told=None):
    return kept_index(embedder, pairs, lambda: None, [].append if told is None else told.append)


def test_a_second_start_computes_no_vector_and_finds_the_same(model_and_pairs, monkeypatch):
    embedder, pairs = model_and_pairs
    first = asked(embedder, pairs).like(3, "images", k=10, find="captions")
    monkeypatch.setattr(type(embedder), "images", None)
    monkeypatch.setattr(type(embedder), "texts", None)
    assert asked(embedder, pairs).like(3, "images", k=10, find="captions") == first
    assert not [path for path in place(embedder, pairs).parent.iterdir() if path.name.endswith(".tmp")]


def test_another_model_and_other_pairs_have_indexes_of_their_own(model_and_pairs):
    embedder, pairs = model_and_pairs
    here = place(embedder, pairs)
    with_other_words = truepair.Pairs(
        name=pairs.name, images=pairs.images, image_index=pairs.image_index, text_index=pairs.text_index,
        texts=truepair.data.pairs.Texts((*pairs.texts.captions[:-1], "other words"), pairs.texts.ids),
    )  # fmt: skip
    assert place(embedder, with_other_words) != here
    next(iter(embedder.model.engine.parameters())).data.add_(1e-3)
    embedder.__dict__.pop("_digest", None)
    assert place(embedder, pairs) != here


def test_vectors_that_are_given_or_in_the_cache_are_not_kept_again(model_and_pairs, monkeypatch):
    embedder, pairs = model_and_pairs
    monkeypatch.setattr(embedder, "computes", False)
    assert len(asked(embedder, pairs).search("a red card", k=24)) == 24
    assert not place(embedder, pairs).exists()
    assert not EncoderEmbedder.computes and not GivenVectors.computes


@pytest.mark.parametrize("name", ["images.npy", "captions.parquet", "index.json"])
def test_a_damaged_one_is_made_anew(model_and_pairs, name):
    embedder, pairs = model_and_pairs
    asked(embedder, pairs)
    damaged = place(embedder, pairs) / name
    damaged.write_bytes(damaged.read_bytes()[:40])
    assert len(asked(embedder, pairs).search("a red card", k=24)) == 24
    assert damaged.stat().st_size > 40
    assert np.isfinite(asked(embedder, pairs).images.held).all()


def test_a_cache_that_takes_nothing_is_told_and_serves_all_the_same(model_and_pairs, tmp_path, monkeypatch):
    embedder, pairs = model_and_pairs
    (tmp_path / "file").write_text("where the folder would be")
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "file"))
    told = []
    assert len(asked(embedder, pairs, told).search("a red card", k=3)) == 3
    assert len(told) == 1 and told[0].startswith("its index is not kept for the next start: ")


def test_those_that_nobody_asked_for_in_a_month_are_removed(model_and_pairs, tmp_path):
    embedder, pairs = model_and_pairs
    old, young, other = (tmp_path / "cache" / name for name in ("index-old", "index-young", "features-old.npy"))
    for folder in (old, young):
        folder.mkdir(parents=True)
    other.write_bytes(b"features")
    month_ago = time.time() - 31 * 86_400
    for path in (old, other):
        os.utime(path, (month_ago, month_ago))
    asked(embedder, pairs)
    assert not old.exists() and young.exists() and other.exists()
