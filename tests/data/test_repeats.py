"""Images that a source holds several times in a row are one image, so that recall means what the papers mean."""

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from truepair.data.describe import describe
from truepair.data.noise import apply_noise_index, inject_noise, write_noise_index
from truepair.data.open import load
from truepair.data.open import open as open_source
from truepair.data.repeats import copies, first_copies, held_in
from truepair.evaluation.retrieval import recall


def naive(rows: list[object]) -> int:
    """The largest k such that every run of equal rows can be cut into pieces of k."""
    lengths = [len(list(run)) for _, run in groupby(rows)]
    return max(k for k in range(1, max(lengths) + 1) if all(length % k == 0 for length in lengths))


@pytest.mark.parametrize("seed", range(40))
def test_against_a_naive_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    images = rng.integers(3, size=int(rng.integers(1, 90)))  # three kinds of image: equal neighbours are frequent
    features = rng.normal(size=(3, 2, 2)).astype(np.float16)[np.repeat(images, k)]
    features[:, 0, 0] = np.nan if seed % 7 == 0 else features[:, 0, 0]
    assert copies(features) == naive([row.tobytes() for row in features])
    assert copies(rng.normal(size=(len(features), 2)), [f"i{row}" for row in np.repeat(images, k)]) == naive(
        np.repeat(images, k).tolist()
    )


def test_a_few_repeated_images_are_no_layout() -> None:
    features = np.random.default_rng(0).normal(size=(10, 3))
    features[4] = features[3]
    assert copies(features) == 1
    assert copies(features[:1]) == 1


def flickr(folder: Path, *, images: int = 6, ids: bool = False) -> Path:
    """Dev as the field distributes it: every image five times in a row; train holds each once."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for split, times in (("train", 1), ("dev", 5)):
        features = rng.normal(size=(images, 2, 3)).astype(np.float32)
        np.save(folder / f"{split}_ims.npy", np.repeat(features, times, axis=0))
        (folder / f"{split}_caps.txt").write_text("".join(f"{split} caption {c}\n" for c in range(5 * images)))
    if ids:
        (folder / "dev_ids.txt").write_text("".join(f"picture {row // 5}\n" for row in range(5 * images)))
    return folder


@pytest.mark.parametrize("ids", [False, True])
def test_the_dev_split_of_flickr30k(tmp_path: Path, ids: bool) -> None:
    folder = flickr(tmp_path / "f30k", ids=ids)
    pairs = load(folder, "dev")
    assert len(pairs) == 30 and len(pairs.images) == 6 and pairs.images.copies == 5
    assert pairs.image_index.tolist() == [c // 5 for c in range(30)]
    assert pairs.images.ids[1] == ("picture 1" if ids else "1")
    assert np.array_equal(pairs.images.features, np.load(folder / "dev_ims.npy")[::5])
    assert pairs.texts.captions == tuple(f"dev caption {c}" for c in range(30))
    assert pairs.ids() == [str(c) for c in range(30)]
    assert load(folder, "train").images.copies == 1
    dev, train = describe(folder).splits
    assert (dev.copies, dev.captions_per_image.maximum, train.copies) == (5, 5, 1)
    assert "each image 5 times in a row" in describe(folder).render()


def test_a_perfect_model_reaches_a_hundred(tmp_path: Path) -> None:
    pairs = load(flickr(tmp_path / "f30k"), "dev")
    image_of_text = pairs.image_of_text
    perfect = (image_of_text[None, :] == np.arange(len(pairs.images))[:, None]).astype(np.float32)
    figures = recall(perfect, image_of_text)
    assert figures["i2t_r1"] == figures["t2i_r1"] == 100


def test_index_files_count_the_rows_of_the_files(tmp_path: Path) -> None:
    pairs = load(flickr(tmp_path / "f30k"), "dev")
    for kind in ("caption", "image"):
        noisy = inject_noise(pairs, 0.6, kind=kind, seed=1)
        write_noise_index(noisy, tmp_path / f"{kind}.npy", layout=kind)
        index = np.load(tmp_path / f"{kind}.npy")
        assert len(index) == 30 and index.max() >= len(pairs.images)
        assert np.array_equal(index // 5, noisy.image_index)
        assert np.array_equal(apply_noise_index(pairs, tmp_path / f"{kind}.npy").image_index, noisy.image_index)
    permuted = np.random.default_rng(0).permutation(30)  # as the field's codes write it: any of the five rows
    np.save(tmp_path / "field.npy", permuted)
    assert np.array_equal(apply_noise_index(pairs, tmp_path / "field.npy").image_index, permuted // 5)


def test_rows_of_embeddings_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "images.npy", np.repeat(rng.normal(size=(4, 3)), 3, axis=0))
    np.save(tmp_path / "texts.npy", rng.normal(size=(12, 3)))
    pairs = open_source(tmp_path).load()
    assert len(pairs.images) == 4 and pairs.image_index.tolist() == [row // 3 for row in range(12)]
    assert describe(tmp_path).splits[0].copies == 3


def test_fashion_stays_as_it_is(fashion: Path) -> None:
    for split in ("train", "dev", "test"):
        assert load(fashion, split).images.copies == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 8), (70,), (3,)])
def test_the_first_of_equal_images_is_that_of_plain_loops(dtype, shape):
    """Also where images begin alike and differ later, and of numbers that are not finite."""
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (60, *shape)).astype(dtype)
    features[10:40] = features[0]
    features[20:40].reshape(20, -1)[:, -1] = rng.integers(2, 6, 20)
    features[50:53] = np.nan
    plain = [next(i for i in range(60) if features[i].tobytes() == features[k].tobytes()) for k in range(60)]
    assert first_copies(features).tolist() == plain
    assert plain != list(range(60))
    assert first_copies(features[:0]).tolist() == [] and first_copies(features[:1]).tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_that_others_hold_are_those_of_plain_loops(dtype):
    rng = np.random.default_rng(1)
    features, others = (rng.integers(0, 2, (40, 5, 8)).astype(dtype) for _ in range(2))
    others[:10] = features[20:30]
    others[5:10, -1, -1] = 7  # they differ in the last number alone
    found = held_in(features, others.astype(np.float32))
    assert found.tolist() == [20, 21, 22, 23, 24]
    assert held_in(features, others[:0]).tolist() == [] and held_in(features[:0], others).tolist() == []
