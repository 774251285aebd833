"""An index of a model's images and captions: the model's own similarities, in order, however it is asked."""

import json

import numpy as np
import pytest
import torch

import truepair
from truepair.data.pairs import Images, Pairs, Texts
from truepair.engines import engine_config
from truepair.engines.model_embedder import ModelEmbedder
from truepair.engines.retrieval_model import Needs, new_model
from truepair.errors import InputError
from truepair.search import Index, load_index
from truepair.search.embedder import GivenVectors
from truepair.search.index import CLOSELY, build_index
from truepair.seeding import torch_seeded

NEEDS = {
    "one network": ("global", Needs()),
    "two networks": ("global", Needs(networks=2)),
    "two views": ("global", Needs(views=2)),
    "subspaces": ("global", Needs(subspace_width=16, subspace_hidden=16)),
    "sgr": ("sgr", Needs()),
    "two of saf": ("saf", Needs(networks=2)),
}


def model_of(pairs, engine="global", needs=None):
    from truepair.data.config import Augmentation

    config = engine_config(engine)(width=32, word_width=24)
    with torch_seeded(0, "test"):
        preparation = config.preparation(pairs, augmentation=Augmentation(), vocabulary=None, minimum_count=1)
        return new_model(config, preparation, needs or Needs())


@pytest.fixture(scope="module")
def pairs(tiny):
    return truepair.load(tiny, "test")


@pytest.fixture(scope="module")
def index(pairs):
    return model_of(pairs).index(pairs)


@pytest.mark.parametrize("kind", NEEDS)
def test_hits_are_in_the_order_of_the_models_similarity(pairs, kind):
    model = model_of(pairs, *NEEDS[kind])
    matrix, index = model.similarity(pairs).numpy(), model.index(pairs)
    for find, rows in (("images", matrix.T), ("captions", matrix)):
        for row in (0, 3):
            hits = index.find(index.by_row(row, "captions" if find == "images" else "images"), find, k=10)
            assert hits.closely == 10
            assert hits.scores == pytest.approx(np.sort(rows[row])[::-1][:10], abs=2e-5)
            assert rows[row][hits.rows] == pytest.approx(hits.scores, abs=2e-5)


def test_words_of_a_caption_find_what_the_caption_finds(pairs, index):
    words = pairs.texts.captions[5]
    by_row = index.find(index.by_row(5, "captions"), "images", 4)
    hits = index.search(f"  {words} ", k=4)
    assert [hit.row for hit in hits] == by_row.rows.tolist() and hits[0].caption is None
    assert [hit.id for hit in hits] == [pairs.images.ids[hit.row] for hit in hits]
    near = index.search(words, k=1, find="captions")[0]
    assert near.score == pytest.approx(1, abs=1e-5) and near.caption is not None


def test_paging_through_all_finds_everything_once(pairs, index):
    pages = [index.search("red round", k=5, offset=offset) for offset in range(0, 20, 5)]
    rows = [hit.row for page in pages for hit in page]
    assert sorted(rows) == list(range(len(pairs.images)))
    assert [hit.row for hit in index.search("red round", k=1000)] == rows


def test_like_leaves_the_item_itself_out(index):
    assert all(hit.row != 3 for hit in index.like(3, "images", k=100))
    assert len(index.like(3, "captions", k=100)) == len(index.captions) - 1
    assert len(index.like(3, "images", k=100, find="captions")) == len(index.captions)


def test_a_local_engine_compares_the_first_hits_and_keeps_the_order_of_the_rest(tmp_path):
    from tests.conftest import write_tiny_precomp

    many = truepair.load(write_tiny_precomp(tmp_path / "many", images={"train": CLOSELY + 40}), "train")
    model = model_of(many, "sgr")
    index = model.index(many)
    hits = index.search(many.texts.captions[0], k=len(many.images))
    assert [hit.closely for hit in hits] == [True] * CLOSELY + [False] * 40
    scores = model.similarity(many).numpy()[:, 0]
    assert [hit.score for hit in hits[:CLOSELY]] == pytest.approx([scores[hit.row] for hit in hits[:CLOSELY]], abs=1e-5)
    assert len({hit.row for hit in hits}) == len(many.images)
    later = index.search(many.texts.captions[0], k=20, offset=CLOSELY - 10)
    assert [hit.row for hit in later] == [hit.row for hit in hits[CLOSELY - 10 : CLOSELY + 10]]


def test_save_and_load(pairs, index, tmp_path):
    model = model_of(pairs)
    loaded = model.load_index(index.save(tmp_path / "index"), pairs)
    assert loaded.search("red round", k=7) == index.search("red round", k=7)
    assert index.save(tmp_path / "index") == tmp_path / "index"  # over its own
    without = model.load_index(tmp_path / "index")
    assert without.search("red round", k=7) == index.search("red round", k=7)


def test_an_index_of_another_model_or_of_other_pairs_is_refused(pairs, index, tmp_path, tiny):
    index.save(tmp_path / "index")
    other = model_of(pairs)
    with torch.no_grad():
        next(other.engine.parameters()).add_(1e-3)
    with pytest.raises(InputError, match=r"of another model .* build it again"):
        load_index(tmp_path / "index", ModelEmbedder(other))
    with pytest.raises(InputError, match="of other pairs"):
        load_index(tmp_path / "index", ModelEmbedder(model_of(pairs)), truepair.load(tiny, "dev"))


def test_damaged_and_foreign_folders_are_refused(pairs, index, tmp_path):
    embedder = ModelEmbedder(model_of(pairs))
    with pytest.raises(InputError, match="holds no index"):
        load_index(tmp_path, embedder)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"other things \(mine.txt\)"):
        index.save(tmp_path)
    folder = index.save(tmp_path / "index")
    (folder / "images.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="its images cannot be read"):
        load_index(folder, embedder)
    np.save(folder / "images.npy", np.zeros((3, 32), np.float32))
    with pytest.raises(InputError, match="do not fit"):
        load_index(folder, embedder)
    (folder / "index.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(InputError, match="another version"):
        load_index(folder, embedder)


def test_an_index_that_was_cut_off_while_it_was_written_is_none(pairs, index, tmp_path, monkeypatch):
    folder = index.save(tmp_path / "index")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(truepair.TruepairError, match="No space left"):
        index.save(folder)
    with pytest.raises(InputError, match="was cut off"):
        load_index(folder, ModelEmbedder(model_of(pairs)))
    monkeypatch.undo()
    assert index.save(folder) == folder


def test_what_cannot_be_looked_for_says_why(pairs, index):
    with pytest.raises(InputError, match="words to search for are empty"):
        index.search("  ")
    with pytest.raises(InputError, match="nobody knows what made them"):
        index.search(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(InputError, match="expected images or captions"):
        index.search("red", find="texts")
    with pytest.raises(InputError, match="row 99"):
        index.like(99, "images")
    with pytest.raises(InputError, match="expected at least 1"):
        index.search("red", k=0)


def vectors_of_pairs(rng=None):
    rng = rng or np.random.default_rng(0)
    images, texts = rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    index = np.arange(6)
    return Pairs(
        Images(images.astype(np.float32), tuple("abcdef")),
        Texts(tuple("ABCDEF"), tuple("uvwxyz"), texts.astype(np.float16)),
        index,
        index,
        name="vectors",
    )


def test_vectors_without_a_model_are_searched_by_the_items_of_the_data():
    pairs = vectors_of_pairs()
    index: Index = build_index(GivenVectors(pairs), pairs)
    cosines = [
        np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)
        for a in pairs.images.features[2:3].astype(float)
        for b in pairs.texts.features.astype(float)
    ]
    hits = index.like(2, "images", 6, find="captions")
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines, reverse=True), abs=1e-4)
    with pytest.raises(InputError, match="without the model that made them: words"):
        index.search("a dog")
    with pytest.raises(InputError, match="a picture from outside has none"):
        index.search(np.zeros((8, 8, 3), np.uint8))


def test_a_picture_finds_the_caption_that_its_own_image_finds(tmp_path):
    from tests.serve.conftest import write_pictures

    folder = write_pictures(tmp_path / "cards", count=12)
    cards = truepair.load(folder, encoder="windows")
    index = model_of(cards).index(cards)
    for picture in (folder / "images" / "4.jpg", (folder / "images" / "4.jpg").read_bytes()):
        by_picture = index.search(picture, k=12)
        own = index.find(index.by_row(4, "images"), "captions", 12)
        assert [hit.score for hit in by_picture] == pytest.approx(own.scores.tolist(), abs=2e-3)
    assert index.search(folder / "images" / "4.jpg", k=1, find="images")[0].row == 4
    with pytest.raises(InputError, match="cannot be read as a picture"):
        index.search(b"no picture")
