import io
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truepair.data.noise import apply_noise_index, inject_noise, write_noise_index
from truepair.data.open import load
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError

Kind = Literal["caption", "image"]
KINDS: tuple[Kind, ...] = ("caption", "image")


def make_pairs(images: int, per_image: int = 1) -> Pairs:
    texts = images * per_image
    return Pairs(
        images=Images(np.zeros((images, 2, 3), np.float32), tuple(map(str, range(images)))),
        texts=Texts(tuple(f"caption {t}" for t in range(texts)), tuple(map(str, range(texts)))),
        image_index=np.repeat(np.arange(images, dtype=np.int64), per_image),
        text_index=np.arange(texts, dtype=np.int64),
        name="made",
    )


some_noise = {
    "images": st.integers(1, 40),
    "per_image": st.integers(1, 5),
    "rate": st.floats(0, 1),
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 2**40),
}


@given(**some_noise)
def test_noise_permutes_and_keeps_the_truth(images: int, per_image: int, rate: float, kind: Kind, seed: int) -> None:
    pairs = make_pairs(images, per_image)
    noisy = inject_noise(pairs, rate, kind=kind, seed=seed)
    assert np.array_equal(np.sort(noisy.image_index), pairs.image_index)
    assert noisy.true_image is not None
    assert np.array_equal(noisy.true_image, pairs.image_index)
    assert np.array_equal(noisy.text_index, pairs.text_index)
    entries = len(pairs) if kind == "caption" else images
    assert noisy.mismatch_rate is not None
    assert noisy.mismatch_rate <= round(rate * entries) / entries
    assert pairs.true_image is None
    assert np.array_equal(pairs.image_index, np.arange(images).repeat(per_image))


@pytest.mark.parametrize("kind", KINDS)
def test_rate_zero_changes_nothing_and_knows_it(kind: Kind) -> None:
    noisy = inject_noise(make_pairs(20, 5), 0.0, kind=kind, seed=1)
    assert noisy.mismatch_rate == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_rate_one_leaves_only_chance_matches(kind: Kind) -> None:
    rate = inject_noise(make_pairs(1000, 5), 1.0, kind=kind, seed=1).mismatch_rate
    assert rate is not None
    assert 0.99 < rate <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_realised_rate_is_close_to_the_nominal_one(kind: Kind) -> None:
    rate = inject_noise(make_pairs(2000, 5), 0.4, kind=kind, seed=3).mismatch_rate
    assert rate is not None
    assert 0.395 < rate <= 0.4


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_seed_decides(kind: Kind) -> None:
    pairs = make_pairs(50, 2)
    first = inject_noise(pairs, 0.5, kind=kind, seed=7)
    np.random.seed(0)  # noqa: NPY002 - the global state is what must not matter
    again, other = inject_noise(pairs, 0.5, kind=kind, seed=7), inject_noise(pairs, 0.5, kind=kind, seed=8)
    assert np.array_equal(first.image_index, again.image_index)
    assert not np.array_equal(first.image_index, other.image_index)


def test_image_noise_moves_captions_together_and_caption_noise_does_not() -> None:
    def images_of_group(kind: Kind) -> list[int]:
        index = inject_noise(make_pairs(200, 5), 0.6, kind=kind, seed=2).image_index.reshape(200, 5)
        return [len(set(row)) for row in index.tolist()]

    assert set(images_of_group("image")) == {1}
    assert max(images_of_group("caption")) > 1


def test_known_truth_stays() -> None:
    pairs = make_pairs(100)
    twice = inject_noise(inject_noise(pairs, 0.3, seed=1), 0.3, seed=2)
    assert twice.true_image is not None
    assert np.array_equal(twice.true_image, pairs.image_index)
    assert twice.mismatch_rate is not None
    assert 0.4 < twice.mismatch_rate < 0.6


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_out_of_range(rate: float) -> None:
    with pytest.raises(InputError, match=rf"^rate is {rate}; expected a share from 0"):
        inject_noise(make_pairs(3), rate, seed=0)


def test_seed_kind_and_layout_are_checked(tmp_path: Path) -> None:
    wrong: Any = "captions"
    with pytest.raises(InputError, match="^seed is -1; expected a whole number of at least 0"):
        inject_noise(make_pairs(3), 0.5, seed=-1)
    with pytest.raises(InputError, match="noise kind is 'captions'; expected one of caption, image, class, nearest"):
        inject_noise(make_pairs(3), 0.5, kind=wrong, seed=0)
    with pytest.raises(InputError, match='noise index layout is \'captions\'; expected "caption" or "image"'):
        write_noise_index(make_pairs(3), tmp_path / "x.npy", layout=wrong)


# ---- index files ----


@given(**some_noise)
def test_caption_layout_round_trip(
    tmp_path_factory: pytest.TempPathFactory, images: int, per_image: int, rate: float, kind: Kind, seed: int
) -> None:
    path = tmp_path_factory.mktemp("noise") / "index.npy"
    pairs = make_pairs(images, per_image)
    noisy = inject_noise(pairs, rate, kind=kind, seed=seed)
    write_noise_index(noisy, path)
    stored = np.load(path, allow_pickle=False)
    assert stored.dtype == np.int64
    assert stored.shape == (len(pairs.texts),)
    again = apply_noise_index(pairs, path)
    assert np.array_equal(again.image_index, noisy.image_index)
    assert again.true_image is not None
    assert np.array_equal(again.true_image, pairs.image_index)


def test_image_layout_round_trip_and_l2rm_layout(tmp_path: Path) -> None:
    pairs = make_pairs(30, 5)
    noisy = inject_noise(pairs, 0.5, kind="image", seed=4)
    write_noise_index(noisy, tmp_path / "rcl.npy", layout="image")
    stored = np.load(tmp_path / "rcl.npy", allow_pickle=False)
    assert stored.dtype == np.int64
    assert stored.shape == (30,)
    np.save(tmp_path / "l2rm.npy", stored.repeat(5))
    for name in ("rcl.npy", "l2rm.npy"):
        assert np.array_equal(apply_noise_index(pairs, tmp_path / name).image_index, noisy.image_index)


def test_both_layouts_agree_with_one_caption_an_image(tmp_path: Path) -> None:
    noisy = inject_noise(make_pairs(30), 0.5, kind="caption", seed=4)
    write_noise_index(noisy, tmp_path / "a.npy", layout="caption")
    write_noise_index(noisy, tmp_path / "b.npy", layout="image")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_caption_layout_follows_the_texts_not_the_pairs(tmp_path: Path) -> None:
    pairs = make_pairs(6)
    noisy = inject_noise(pairs, 1.0, seed=5)
    order = np.array([3, 1, 5, 0, 2, 4])
    write_noise_index(noisy.take(order), tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), noisy.image_index)
    again = apply_noise_index(pairs.take(order), tmp_path / "a.npy")
    assert np.array_equal(again.image_index, noisy.image_index[order])


def test_apply_keeps_a_known_truth_and_starts_from_it(tmp_path: Path) -> None:
    pairs = make_pairs(10, 2)
    np.save(tmp_path / "i.npy", np.arange(10, dtype=np.int64))
    mended = apply_noise_index(inject_noise(pairs, 1.0, seed=1), tmp_path / "i.npy")
    assert mended.mismatch_rate == 0.0


def test_other_whole_numbers_are_taken(tmp_path: Path) -> None:
    np.save(tmp_path / "i.npy", np.array([2, 0, 1], dtype=np.int32))
    assert apply_noise_index(make_pairs(3), tmp_path / "i.npy").image_index.tolist() == [2, 0, 1]


def test_image_layout_needs_one_image_per_group_and_the_truth(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"made: captions of image \d+ point to different images .*Write layout=\"cap"):
        write_noise_index(inject_noise(make_pairs(20, 5), 0.5, seed=1), tmp_path / "x.npy", layout="image")
    with pytest.raises(InputError, match=r"made: the image layout needs the true image .* unknown here; inject noise"):
        write_noise_index(make_pairs(4), tmp_path / "x.npy", layout="image")
    assert not (tmp_path / "x.npy").exists()


def test_write_keeps_a_different_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    noisy = inject_noise(make_pairs(20), 0.5, seed=1)
    write_noise_index(noisy, path)
    write_noise_index(noisy, path)
    with pytest.raises(InputError, match=r"x\.npy exists with other content"):
        write_noise_index(inject_noise(make_pairs(20), 0.5, seed=2), path)
    assert np.array_equal(np.load(path), noisy.image_index)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npz(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, index=array)
    return buffer.getvalue()


EXPECTED = r".*expected 10 whole numbers \(one a caption\) or 5 \(one an image\)"
BAD = {
    "length": (npy(np.arange(7)), r"has 7 entries;" + EXPECTED + " for made,.*Use the index file made for this split"),
    "float": (npy(np.zeros(10)), r"holds float64 of shape \(10,\);" + EXPECTED + r".*astype\(np.int64\)"),
    "bool": (npy(np.zeros(10, bool)), "holds bool of shape"),
    "rank": (npy(np.zeros((2, 5), np.int64)), r"holds int64 of shape \(2, 5\);" + EXPECTED),
    "scalar": (npy(np.int64(3)), r"holds int64 of shape \(\);"),
    "high": (npy(np.array([0, 1, 5, 2, 9])), r", row 2 \(from 0\): the image number is 5;" + EXPECTED + ".*2 rows are"),
    "negative": (npy(np.array([0, 1, 2, -1, 4])), r", row 3 \(from 0\): the image number is -1;" + EXPECTED),
    "objects": (npy(np.array([{}] * 10, dtype=object)), r"is not a plain .npy file \(.*" + EXPECTED + ".*np.save"),
    "pickle": (pickle.dumps(list(range(10))), r"is not a plain .npy file \(.*" + EXPECTED),
    "zip": (npz(np.arange(10)), r"is not a plain .npy file \(.*" + EXPECTED),
    "cut": (npy(np.arange(10))[:-8], r"is not a plain .npy file \(.*" + EXPECTED),
    "header": (b"\x93NUMPY\x01\x00\x10\x00{'a' \x00 (((  \n     ", r"is not a plain .npy file \(.*" + EXPECTED),
    "empty": (b"", r"is not a plain .npy file \(.*" + EXPECTED),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_index_files(tmp_path: Path, case: str) -> None:
    path = tmp_path / "index.npy"
    content, message = BAD[case]
    path.write_bytes(content)
    with pytest.raises(InputError, match="index.npy.*" + message):
        apply_noise_index(make_pairs(5, 2), path)


def test_missing_index_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.npy cannot be read \(No such file.*" + EXPECTED + ".*Check the path"):
        apply_noise_index(make_pairs(5, 2), tmp_path / "none.npy")


def test_captions_exchanged_within_classes_stay_there():
    pairs = load("scenes:40")
    labels = np.arange(len(pairs)) % 3
    labelled = replace(pairs, labels=labels.astype(np.int64), class_names=("a", "b", "c"))
    noisy = inject_noise(labelled, 0.5, kind="class", seed=3)
    assert noisy.true_image is not None and (noisy.true_image == pairs.image_index).all()
    changed = np.flatnonzero(noisy.image_index != pairs.image_index)
    assert 0.4 * len(pairs) < len(changed) <= 0.5 * len(pairs)
    for label in range(3):
        inside = labels == label
        assert sorted(noisy.image_index[inside]) == sorted(pairs.image_index[inside])
    with pytest.raises(InputError, match="the pairs have no labels"):
        inject_noise(pairs, 0.5, kind="class", seed=3)


def test_captions_go_to_the_nearest_other_image():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(7, 3, 4)).astype(np.float32) * [1.0, 1.0, 1.0, 50.0]
    features[2, 1:] = 0  # one region alone
    pairs = make_pairs(7, 2)
    pairs = replace(pairs, images=replace(pairs.images, features=features))
    noisy = inject_noise(pairs, 1.0, kind="nearest", seed=3)
    means = [[sum(r[d] for r in image if any(r)) / sum(any(r) for r in image) for d in range(4)] for image in features]
    columns = list(zip(*means, strict=True))
    average = [sum(column) / 7 for column in columns]
    spread = [(sum((v - a) ** 2 for v in column) / 7) ** 0.5 for column, a in zip(columns, average, strict=True)]
    scaled = [[(v - a) / s for v, a, s in zip(row, average, spread, strict=True)] for row in means]

    def cosine(one, other):
        return sum(a * b for a, b in zip(one, other, strict=True)) / (
            sum(a * a for a in one) ** 0.5 * sum(b * b for b in other) ** 0.5
        )

    nearest = [max((j for j in range(7) if j != i), key=lambda j: cosine(scaled[i], scaled[j])) for i in range(7)]
    assert noisy.image_index.tolist() == [nearest[image] for image in pairs.image_index]
    assert noisy.true_image is not None and noisy.true_image.tolist() == pairs.image_index.tolist()
    assert noisy.mismatch_rate == 1.0
    half = inject_noise(pairs, 0.5, kind="nearest", seed=3)
    moved = half.image_index != pairs.image_index
    assert moved.sum() == 7 and half.image_index[moved].tolist() == noisy.image_index[moved].tolist()


def test_the_nearest_image_needs_a_second_one():
    with pytest.raises(InputError, match="needs two images"):
        inject_noise(make_pairs(1, 4), 0.5, kind="nearest", seed=0)
