from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truepair.data.classes import class_sizes, keep_classes
from truepair.data.config import DataConfig
from truepair.data.label_noise import inject_label_noise, write_label_index
from truepair.data.noise import inject_noise
from truepair.data.open import load_splits
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError


def make_pairs(labels: list[int], *, classes: int = 4, per_image: int = 1, name: str = "made/train") -> Pairs:
    """One pair a label; feature row i holds i, caption t names t."""
    count, images = len(labels), len(labels) // per_image
    features = np.arange(images, dtype=np.float32)[:, None].repeat(3, axis=1)
    pictures = np.arange(images, dtype=np.uint8)[:, None, None, None].repeat(3, axis=3)
    return Pairs(
        images=Images(features, tuple(f"image {i}" for i in range(images)), pictures),
        texts=Texts(
            tuple(f"caption {t}" for t in range(count)),
            tuple(f"text {t}" for t in range(count)),
            np.arange(count, dtype=np.float32)[:, None],
        ),
        image_index=np.repeat(np.arange(images, dtype=np.int64), per_image),
        text_index=np.arange(count, dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
        class_names=tuple("abcdefgh"[:classes]),
        name=name,
    )


def contents(pairs: Pairs) -> list[tuple[str, float, int, str, float, str]]:
    """Every pair with all that belongs to it, by value."""
    assert pairs.labels is not None
    assert pairs.texts.features is not None
    assert pairs.images.pictures is not None
    return [
        (
            pairs.images.ids[image],
            float(pairs.images.features[image, 0]),
            int(pairs.images.pictures[image, 0, 0, 0]),
            pairs.texts.captions[text],
            float(pairs.texts.features[text, 0]),
            pairs.class_names[label],
        )
        for image, text, label in zip(pairs.image_index, pairs.text_index, pairs.labels, strict=True)
    ]


@given(st.lists(st.integers(0, 3), min_size=4, max_size=40), st.integers(1, 6), st.integers(1, 2))
def test_what_stays_is_what_it_was(labels: list[int], least: int, per_image: int) -> None:
    labels = labels[: len(labels) // per_image * per_image]
    train, test = make_pairs(labels, per_image=per_image), make_pairs([0, 1, 2, 3, 3, 1], name="made/test")
    large = [k for k in range(4) if labels.count(k) >= least]
    if len(large) < 2:
        with pytest.raises(InputError, match=rf"made/train: {len(large)} of 4 classes have at least {least} training"):
            keep_classes(train, [test], least=least)
        return
    kept, (kept_test, none) = keep_classes(train, [test, None], least=least)
    assert none is None
    for before, after in ((train, kept), (test, kept_test)):
        assert after is not None
        assert after.class_names == tuple("abcd"[k] for k in large)
        assert contents(after) == [row for row in contents(before) if row[-1] in after.class_names]
        assert set(after.image_index.tolist()) == set(range(len(after.images)))
        assert set(after.text_index.tolist()) == set(range(len(after.texts)))
        assert after.images.pictures is not None
        assert len(after.images.pictures) == len(after.images) == len(after.images.ids)
    assert class_sizes(kept).tolist() == [labels.count(k) for k in large]


def test_nothing_is_copied_where_no_pair_goes() -> None:
    train = make_pairs([0, 0, 2, 2])
    kept, _ = keep_classes(train, [], least=2)
    assert kept.class_names == ("a", "c")
    assert kept.labels is not None
    assert kept.labels.tolist() == [0, 0, 1, 1]
    assert kept.images is train.images


def test_sizes_are_counted_by_the_true_labels() -> None:
    train = replace(make_pairs([0, 0, 0, 1, 1, 1]), true_labels=np.array([0, 0, 1, 1, 2, 1]))
    assert class_sizes(train).tolist() == [2, 3, 1, 0]
    kept, _ = keep_classes(train, [], least=2)
    assert kept.labels is not None
    assert kept.true_labels is not None
    assert kept.labels.tolist() == [0, 0, 0, 1, 1]
    assert kept.true_labels.tolist() == [0, 0, 1, 1, 1]
    wrong = replace(train, labels=np.array([0, 0, 3, 1, 1, 1]))
    with pytest.raises(InputError, match="1 pairs of classes that stay have wrong labels .* before adding label noise"):
        keep_classes(wrong, [], least=2)


def test_true_images_are_renumbered_too() -> None:
    noisy = inject_noise(make_pairs([0, 1, 2] * 8), 1.0, seed=0)
    kept, _ = keep_classes(replace(noisy, labels=np.array([0, 1] * 11 + [2, 2])), [], least=3)
    assert kept.true_image is not None
    assert [kept.images.ids[image] for image in kept.true_image] == [f"image {p}" for p in range(22)]
    assert noisy.true_image is not None
    assert [kept.images.ids[image] for image in kept.image_index] == [f"image {i}" for i in noisy.image_index[:22]]


def test_what_cannot_be_done() -> None:
    train = make_pairs([0, 0, 1, 1, 2])
    with pytest.raises(InputError, match="least is 0 pairs a class; expected at least 1"):
        keep_classes(train, [], least=0)
    with pytest.raises(InputError, match=r"made/test: none of its 2 pairs is of a class that stays"):
        keep_classes(train, [make_pairs([2, 3], name="made/test")], least=2)
    with pytest.raises(InputError, match=r"made/test and made/train have different classes \(5 and 4\)"):
        keep_classes(train, [make_pairs([0, 1], classes=5, name="made/test")], least=2)
    with pytest.raises(InputError, match="made/train has no labels; name the column"):
        keep_classes(replace(train, labels=None, class_names=()), [], least=2)


# ---- what a run gets ----


@pytest.fixture
def source(tmp_path: Path) -> str:
    """60 training pairs of classes of 30, 20 and 10, and a test-only class; feature row k holds k + 1."""

    def part(labels: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        column = np.arange(1, len(labels) + 1, dtype=np.float32)[:, None]
        return column, column.repeat(2, axis=1), np.array(labels)

    train, test = part([0, 0, 0, 1, 1, 2] * 10), part([0, 1, 2, 3] * 3)
    np.savez(tmp_path / "f.npz", **{f"{side}_{split}": array for split, arrays in (("tr", train), ("te", test))
             for side, array in zip("ITL", arrays, strict=True)})  # fmt: skip
    return str(tmp_path / "f.npz")


def test_small_classes_go_before_the_noise(source: str) -> None:
    splits = load_splits(DataConfig(source, least_class_pairs=11, label_noise=0.5, dev_pairs=4), seed=3)
    train, dev, test = splits.train, splits.dev, splits.test
    assert dev is not None
    assert test is not None
    assert train.class_names == dev.class_names == test.class_names == ("0", "1")
    assert [len(pairs) for pairs in (train, dev, test)] == [50, 2, 4]
    assert train.true_labels is not None
    assert train.labels is not None
    assert train.true_labels.tolist() == [0, 0, 0, 1, 1] * 10
    assert 5 < (train.labels != train.true_labels).sum() <= 25
    assert dev.true_labels is None


def test_label_noise_is_drawn_for_the_pairs_that_are_trained_on(source: str) -> None:
    all_of_them = load_splits(DataConfig(source, label_noise=1.0), seed=3).train
    first = load_splits(DataConfig(source, label_noise=1.0, train_pairs=20), seed=3).train
    assert len(first) == 20
    assert first.label_noise_rate is not None
    assert first.label_noise_rate > 0.4
    other = load_splits(DataConfig(source, label_noise=1.0, noise_seed=4), seed=3).train
    same = load_splits(DataConfig(source, label_noise=1.0, noise_seed=3), seed=9).train
    assert all_of_them.labels is not None
    assert np.array_equal(all_of_them.labels, same.labels)
    assert not np.array_equal(all_of_them.labels, other.labels)


def test_a_label_index_is_for_all_pairs_of_the_classes_that_stay(source: str, tmp_path: Path) -> None:
    train, _ = keep_classes(load_splits(DataConfig(source), seed=0).train, [], least=11)
    noisy = inject_label_noise(train, 0.6, seed=8)
    write_label_index(noisy, tmp_path / "index.npy")
    options = {"least_class_pairs": 11, "label_noise_index": str(tmp_path / "index.npy")}
    found = load_splits(DataConfig(source, **options, train_pairs=30), seed=0).train
    assert noisy.labels is not None
    assert np.array_equal(found.labels, noisy.labels[:30])
    assert np.array_equal(found.true_labels, train.labels[:30])
    with pytest.raises(InputError, match=r"index\.npy has 50 entries; expected 60 whole numbers"):
        load_splits(DataConfig(source, label_noise_index=options["label_noise_index"]), seed=0)
    with pytest.raises(InputError, match="--label-noise and --label-noise-index both say which labels are wrong"):
        load_splits(DataConfig(source, **options, label_noise=0.2), seed=0)


def test_both_kinds_of_noise_and_none(source: str) -> None:
    both = load_splits(DataConfig(source, label_noise=0.5, noise=0.5), seed=0).train
    assert both.label_noise_rate
    assert both.mismatch_rate
    none = load_splits(DataConfig(source), seed=0).train
    assert none.true_labels is None
    assert none.true_image is None


def test_options_for_other_sources(source: str, tiny: Path) -> None:
    with pytest.raises(
        InputError, match=r"f\.npz holds features with labels of their own, .*no option label \('kind'\)"
    ):
        load_splits(DataConfig(source, label="kind"), seed=0)
    with pytest.raises(InputError, match=r"tiny holds features, for which there is no option dev_pairs \(3\)"):
        load_splits(DataConfig(str(tiny), dev_pairs=3), seed=0)
    with pytest.raises(InputError, match="has no labels, so none can be wrong; name the column"):
        load_splits(DataConfig(str(tiny), label_noise=0.2), seed=0)
    for name in ("least_class_pairs", "dev_pairs"):
        with pytest.raises(InputError, match=f"{name} is 0; expected at least 1"):
            DataConfig(source, **{name: 0})


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = DataConfig("f.npz", label_noise_index="labels.npy").resolved()
    assert config.source == str(tmp_path / "f.npz")
    assert config.label_noise_index == str(tmp_path / "labels.npy")
    assert DataConfig("scenes").resolved() == DataConfig("scenes")


def test_fashion_without_its_small_classes(fashion: Path) -> None:
    splits = load_splits(DataConfig(str(fashion), label="articleType", least_class_pairs=20), seed=0)
    assert splits.dev is not None
    assert splits.test is not None
    assert len(splits.train.class_names) == 61
    assert [len(pairs) for pairs in (splits.train, splits.dev, splits.test)] == [11561, 960, 964]
    assert class_sizes(splits.train).min() >= 20
    assert len(splits.test.images) == len(splits.test.texts) == 964
