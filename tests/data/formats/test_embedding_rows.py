"""Captions of one image stay with it, however many there are and whatever is left out; lost rows are told."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import truepair
from tests.data.formats.made_embeddings import write_parquet
from truepair.data.describe import describe
from truepair.data.embedding_rows import EmbeddingRows
from truepair.data.open import UnusedEntries
from truepair.data.selection import Selection

IMAGES, SHARES = 30, {"dev_share": 0.1, "test_share": 0.2}


def folder_of(folder: Path, counts: list[int], *, named: bool = True, bad: dict[str, int] | None = None) -> Path:
    """Embeddings with so many captions of each image; `bad` sets a row of the images or the texts to NaN."""
    rng, image = np.random.default_rng(0), np.repeat(np.arange(len(counts)), counts)
    sides = {"images": rng.normal(size=(len(counts), 8))[image], "texts": rng.normal(size=(len(image), 8))}
    for side, row in (bad or {}).items():
        sides[side][row] = np.nan
    folder.mkdir(exist_ok=True)
    for side, values in sides.items():
        np.save(folder / f"{side}.npy", values.astype(np.float32))
    told = {"caption": [f"caption {row}" for row in range(len(image))]}
    names = [f"{number:03d}.jpg" for number in image]
    write_parquet(folder / "metadata.parquet", {**told, **({"image_path": names} if named else {})})
    return folder


def images_of(pairs: truepair.Pairs) -> set[bytes]:
    return {row.tobytes() for row in pairs.images.features}


@pytest.mark.filterwarnings("ignore::truepair.data.open.UnusedEntries")
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("counts", "bad"),
    [
        ([5] * IMAGES, {}),
        ([5] * IMAGES, {"texts": 7}),
        ([5] * IMAGES, {"images": 7}),
        ([6, *[5] * (IMAGES - 1)], {}),
        ([2, 4, 3, 1, 7] * 6, {"images": 0, "texts": 3}),
        ([2, 4] * 15, {"texts": 3}),
    ],
)
def test_no_image_is_in_two_splits(tmp_path: Path, counts: list[int], bad: dict[str, int], named: bool) -> None:
    if counts[:2] == [2, 4] and not named:
        pytest.skip("four equal rows among twos may be two equal images")
    folder = folder_of(tmp_path / "in", counts, named=named, bad=bad)
    parts = [truepair.load(folder, split, **SHARES) for split in ("train", "dev", "test")]
    for pairs in parts:
        assert len(images_of(pairs)) == len(pairs.images)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not images_of(parts[one]) & images_of(parts[other])
    assert sum(len(pairs) for pairs in parts) == sum(counts) - len(bad)
    assert sum(len(pairs.images) for pairs in parts) == len(counts)
    for pairs in parts:  # each caption with its own image
        whole = np.load(folder / "images.npy")[pairs.source_rows]
        assert np.array_equal(pairs.images.features[pairs.image_index], whole)


def test_a_whole_source_is_split_as_ever(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", [5] * IMAGES)
    test = truepair.load(folder, "test", **SHARES)
    assert test.images.copies == 5
    order = truepair.seeding.generator(0, "splits").permutation(IMAGES)
    assert sorted({row // 5 for row in test.source_rows.tolist()}) == sorted(order[3:9].tolist())


def test_what_own_export_leaves_is_grouped_too(tmp_path: Path) -> None:
    found = truepair.open(folder_of(tmp_path / "in", [5] * IMAGES))
    kept = np.arange(len(found)) != 7
    (tmp_path / "out").mkdir()
    found.write(Selection(kept, ~kept, kept.astype(np.float32)), tmp_path / "out")
    again = truepair.load(tmp_path / "out")
    assert len(again.images) == IMAGES and np.bincount(again.image_index).tolist() == [5, 4, *[5] * (IMAGES - 2)]


def test_lost_rows_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", [5] * IMAGES, bad={"texts": 7, "images": 21})
    with pytest.warns(UnusedEntries, match="2 entries cannot be used and were left out, the first is images.npy, 7: a"):
        truepair.load(folder)
    with pytest.warns(UnusedEntries, match="2 entries cannot be used"):
        truepair.load(folder, "test", **SHARES)
    (split,) = describe(folder).splits
    assert [(problem.row, problem.reason, problem.used) for problem in split.problems] == [
        (7, "nan-row", False),
        (21, "nan-row", False),
    ]
    assert split.problem_count == 2 and split.copies == 1
    assert (split.captions_per_image.minimum, split.captions_per_image.maximum) == (4, 5)
    found = truepair.open(folder)
    found.load(), found.load()
    assert len(found.problems) == 2


def test_single_repeated_vectors_and_rows_without_a_name_stay_apart() -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 3))
    vectors[4] = vectors[3]
    for names in ([f"{row}" for row in range(9)], [""] * 9):
        noted = EmbeddingRows()
        noted.add(vectors, vectors, names)
        assert noted.images().tolist() == list(range(9))


@pytest.mark.parametrize("seed", range(20))
def test_ranges_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(12), rng.integers(2, 4, size=12))
    vectors = rng.normal(size=(12, 3))[image]
    vectors[rng.integers(len(image), size=3)] = np.nan
    names = [f"{number}" if seed % 2 else f"row {row}" for row, number in enumerate(image)]
    found = []
    for step in (1, 3, len(image)):
        noted = EmbeddingRows()
        for start, stop in pairwise([*range(0, len(image), step), len(image)]):
            noted.add(vectors[start:stop], vectors[start:stop], names[start:stop])
        found.append(noted.images().tolist())
    usable = image[np.isfinite(vectors).all(axis=1)]
    assert found[0] == found[1] == found[2] == (np.unique(usable, return_inverse=True)[1]).tolist()
