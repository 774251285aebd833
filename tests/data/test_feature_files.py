"""Labelled feature files: every layout in every format, their splits, and what is refused."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import truepair.data.formats.labelled.feature_arrays as feature_arrays
from tests.data.made_features import (
    FORMATS,
    LAYOUTS,
    make,
    write_h5,
    write_mat,
    write_mat73,
    write_npz,
)
from truepair.data.config import Reading
from truepair.data.formats.labelled.feature_files import LabelledFeatures, pairs_of, splits_in
from truepair.data.pairs import Array
from truepair.errors import InputError


def load_features(path, split, **options):
    return pairs_of(LabelledFeatures().read(path), split, **options)


def feature_splits(path):
    return splits_in(LabelledFeatures().read(path))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_in_every_format(tmp_path: Path, layout: str, form: str) -> None:
    name, write = FORMATS[form]
    arrays = make(layout)
    path = write(tmp_path / name, arrays)
    own_dev = "dev" in LAYOUTS[layout]
    assert LabelledFeatures().recognises(path, Reading())
    assert feature_splits(path) == ("train", "dev", "test")
    for split, count in {"train": 11, "dev": 4 if own_dev else 2, "test": 7 if own_dev else 5}.items():
        pairs = load_features(path, split)
        part = split if own_dev or split == "train" else "test"
        first = 2 if split == "test" and not own_dev else 0
        assert len(pairs) == len(pairs.images) == len(pairs.texts) == count
        assert pairs.texts.features is not None
        assert pairs.labels is not None
        assert pairs.images.features.dtype == pairs.texts.features.dtype == np.float32
        assert pairs.class_names == ("3", "5", "7")
        assert pairs.name == f"{name}/{split}"
        for row in range(count):
            source = first + row
            for found, array in zip((pairs.images, pairs.texts), LAYOUTS[layout][part][:2], strict=True):
                assert found.features is not None
                assert found.features[row].tolist() == np.float32(arrays[array][source]).tolist()
            assert pairs.labels[row] == source % 3
            assert pairs.images.ids[row] == pairs.texts.captions[row] == f"{part} {source}"
        assert pairs.image_index.tolist() == pairs.text_index.tolist() == list(range(count))


@pytest.mark.parametrize("form", ["npz", "h5"])
def test_half_precision_stays_and_shared_arrays_cannot_be_written(tmp_path: Path, form: str) -> None:
    name, write = FORMATS[form]
    path = write(tmp_path / name, make(I_tr=np.ones((11, 4), np.float16), T_tr=np.ones((11, 9), np.uint8)))
    pairs = load_features(path, "train")
    assert pairs.images.features.dtype == np.float16
    assert pairs.texts.features is not None
    assert pairs.texts.features.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        pairs.images.features[0] = 0


def test_a_new_file_of_the_same_name_is_read_anew(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "f.npz", make())
    os.utime(path, (1, 1))
    before = load_features(path, "train").images.features[0, 0]
    write_npz(path, make(I_tr=np.full((11, 6), 8.0)))
    assert before != 8.0
    assert load_features(path, "train").images.features[0, 0] == 8.0


def test_sparse_matrices_of_matlab_are_read(tmp_path: Path) -> None:
    tags = np.eye(11, 12)
    pairs = load_features(write_mat(tmp_path / "f.mat", make(T_tr=csr_matrix(tags))), "train")
    assert pairs.texts.features is not None
    assert pairs.texts.features.tolist() == tags.tolist()


# ---- splits ----


@pytest.mark.parametrize(("tests", "dev"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (693, 231)])
def test_a_third_of_the_test_rows_is_for_validation(tmp_path: Path, tests: int, dev: int) -> None:
    arrays = make(I_te=np.ones((tests, 6)), T_te=np.ones((tests, 3)), L_te=np.full(tests, 3))
    path = write_npz(tmp_path / "f.npz", arrays)
    assert len(load_features(path, "test")) == tests - dev
    if dev:
        assert len(load_features(path, "val")) == dev
    else:
        assert feature_splits(path) == ("train", "test")
        with pytest.raises(InputError, match=r"f\.npz has no split 'dev'; it has train, test"):
            load_features(path, "dev")


def test_another_number_of_validation_pairs(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "f.npz", make())
    dev, test = (load_features(path, split, dev_pairs=5) for split in ("dev", "test"))
    assert dev.images.ids == tuple(f"test {row}" for row in range(5))
    assert test.images.ids == ("test 5", "test 6")
    for wrong in (0, 7, -1):
        with pytest.raises(InputError, match=rf"dev_pairs is {wrong}; expected 1 … 6, as it parts the 7 test pairs"):
            load_features(path, "dev", dev_pairs=wrong)
    with pytest.raises(InputError, match="has a validation part of its own; leave out dev_pairs"):
        load_features(write_npz(tmp_path / "own.npz", make("plain")), "train", dev_pairs=2)


def test_a_file_with_training_pairs_alone(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "f.npz", make(I_te=None, T_te=None, L_te=None))
    assert feature_splits(path) == ("train",)
    with pytest.raises(InputError, match="has no split 'test'; it has train"):
        load_features(path, "test")


# ---- labels ----


def test_a_class_seen_in_test_alone_is_kept(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "f.npz", make(L_te=np.array([11, -2, 3, 3, 3, 11, 7])))
    train, test = load_features(path, "train"), load_features(path, "test")
    assert train.class_names == test.class_names == ("-2", "3", "5", "7", "11")
    assert train.labels is not None
    assert test.labels is not None
    assert train.labels.tolist() == [1, 2, 3] * 3 + [1, 2]
    assert test.labels.tolist() == [1, 1, 1, 4, 3]


@pytest.mark.parametrize("form", ["mat", "mat73", "npz", "h5"])
@pytest.mark.parametrize("shape", ["flat", "column", "row", "one-hot"])
def test_shapes_of_labels(tmp_path: Path, form: str, shape: str) -> None:
    def shaped(labels: Array) -> Array:
        if shape == "flat":
            return labels
        if shape == "one-hot":
            return np.eye(3)[labels]
        return labels[:, None] if shape == "column" else labels[None, :]

    name, write = FORMATS[form]
    arrays = make(L_tr=shaped(np.arange(11) % 3), L_te=shaped(np.arange(7) % 3))
    labels = load_features(write(tmp_path / name, arrays), "train").labels
    assert labels is not None
    assert labels.tolist() == [0, 1, 2] * 3 + [0, 1]


def test_labels_of_image_and_text_may_start_at_different_numbers(tmp_path: Path) -> None:
    arrays = make("mrl")
    for name in ("train_texts_labels", "test_texts_labels"):
        arrays[name] = arrays[name] - 3
    assert load_features(write_npz(tmp_path / "f.npz", arrays), "train").class_names == ("3", "5", "7")
    arrays["train_texts_labels"][[4, 9]] += 2
    with pytest.raises(
        InputError, match=r"row 4 \(from 0\): train_imgs_labels says 5 and train_texts_labels 4.*2 rows"
    ):
        load_features(write_npz(tmp_path / "f.npz", arrays), "test")


# ---- what is refused ----


def spoiled(array: Array, row: int, value: float) -> Array:
    array = np.array(array, dtype=np.float64)
    array[row] = value
    return array


BASE = make()
BAD = {
    "no labels": (make(L_tr=None), r"no train labels; expected one class .* L_train, L_tr, .*holds I_te, I_tr, L_te"),
    "no test labels": (make(L_te=None), "holds no test labels"),
    "no texts": (make(T_te=None), "holds no test texts; expected exactly one array"),
    "two images": (make(tr_img=BASE["I_tr"]), r"several arrays of train images \(I_tr, tr_img\)"),
    "unknown": ({"a": BASE["I_tr"], "b": BASE["T_tr"]}, r"holds a, b; .* I_tr, .*without classes .* images\.npy"),
    "fraction": (make(L_tr=spoiled(BASE["L_tr"], 4, 2.5)), r"L_tr, row 4 \(from 0\) is 2\.5; expected a whole number"),
    "nan label": (make(L_te=spoiled(BASE["L_te"], 2, np.nan)), r"L_te, row 2 \(from 0\) is nan; expected"),
    "inf label": (make(L_te=spoiled(BASE["L_te"], 2, np.inf)), r"L_te, row 2 \(from 0\) is inf"),
    "two classes": (make(L_tr=np.eye(11, 3) + np.eye(11, 3, 1)), r"L_tr has shape \(11, 3\), and row 0 .*one class"),
    "one class": (make(L_tr=np.full(11, 5)), r"all 11 training pairs are of one class \(5\); expected at least two"),
    "few labels": (make(L_tr=BASE["L_tr"][:-1]), "I_tr has 11 rows, but there are 10 train labels"),
    "few texts": (make(T_te=BASE["T_te"][:-1]), "T_te has 6 rows, but there are 7 test labels"),
    "few images": (make(I_tr=BASE["I_tr"][:-1]), "I_tr has 10 rows, but there are 11 train labels"),
    "nan": (make(T_tr=spoiled(BASE["T_tr"], 7, np.nan)), r"T_tr, row 7 \(from 0\) holds nan; expected finite .* again"),
    "too large": (make(I_tr=spoiled(BASE["I_tr"], 7, 1e200)), r"I_tr, row 7 \(from 0\) holds inf"),
    "zero image": (make(I_tr=spoiled(BASE["I_tr"], 3, 0)), r"I_tr, row 3 \(from 0\) is all zero, .*remove the pairs"),
    "zero text": (make(T_tr=spoiled(BASE["T_tr"], 3, 1e-60)), r"T_tr, row 3 \(from 0\) is all zero"),
    "rank": (make(I_tr=np.ones((11, 2, 3))), r"I_tr has shape \(11, 2, 3\); expected \(pairs, width\)"),
}  # fmt: skip


@pytest.mark.parametrize("form", ["mat", "npz", "h5"])
@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path: Path, case: str, form: str) -> None:
    arrays, message = BAD[case]
    name, write = FORMATS[form]
    with pytest.raises(InputError, match=rf"f\.{form}.*{message}"):
        load_features(write(tmp_path / name, arrays), "train")


def test_rows_of_test_are_counted_from_the_start_of_the_array(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "f.npz", make(I_te=spoiled(BASE["I_te"], 4, 0)))
    with pytest.raises(InputError, match=r"I_te, row 4 \(from 0\) is all zero"):
        load_features(path, "test")
    assert len(load_features(path, "dev")) == 2
    assert len(load_features(path, "train")) == 11


def test_cells_structures_and_objects(tmp_path: Path) -> None:
    cell = np.empty((1, 2), dtype=object)
    cell[0, :] = [np.ones(3), np.ones(4)]
    for bad, found in ((cell, "a cell array or object"), ({"a": 1.0}, "a structure"), (np.array(["x"] * 11), "text")):
        with pytest.raises(InputError, match=rf"f\.mat: I_tr is {found}; expected a plain array of numbers"):
            load_features(write_mat(tmp_path / "f.mat", make(I_tr=bad)), "train")
    with pytest.raises(InputError, match=r"f\.npz cannot be read as a .npz file \(Object arrays cannot be loaded"):
        load_features(write_npz(tmp_path / "f.npz", make(I_tr=cell)), "train")


def test_cells_and_groups_of_matlab_7(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = write_mat73(tmp_path / "f.mat", make())
    with h5py.File(path, "r+") as file:
        del file["I_tr"]
        file.create_dataset("I_tr", data=[[file["T_tr"].ref]], dtype=h5py.ref_dtype)
        file["I_tr"].attrs["MATLAB_class"] = np.bytes_("cell")
    with pytest.raises(InputError, match=r"f\.mat: I_tr is a MATLAB cell; expected a plain array"):
        load_features(path, "train")
    with h5py.File(path, "r+") as file:
        del file["I_tr"]
        file.create_group("I_tr")
    with pytest.raises(InputError, match=r"f\.mat: I_tr is a group or empty; expected a plain array"):
        load_features(path, "train")


@pytest.mark.parametrize("name", ["f.mat", "f.npz", "f.h5", "f.hdf5"])
def test_broken_and_missing_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(InputError, match=rf"{name} cannot be read \(No such file.*Check the path"):
        load_features(path, "train")
    whole = FORMATS["mat" if name == "f.mat" else "npz" if name == "f.npz" else "h5"][1](path, make()).read_bytes()
    for content in (b"", b"nothing like it" * 100, whole[: len(whole) // 2], b"\x80\x04]\x94."):
        path.write_bytes(content)
        with pytest.raises(InputError, match=name):
            load_features(path, "train")


def test_a_single_array_is_no_npz_file(tmp_path: Path) -> None:
    with (tmp_path / "f.npz").open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InputError, match=r"f\.npz cannot be read .*a single array without a name"):
        load_features(tmp_path / "f.npz", "train")


def test_without_h5py_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_h5(tmp_path / "f.h5", make())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"install it with: pip install 'truepair\[hdf5\]'"):
        load_features(path, "train")


def test_hdf5_reads_the_rows_of_the_split_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_h5(tmp_path / "f.h5", make())
    asked: dict[str, tuple[int, int | None]] = {}
    read = feature_arrays._Hdf5File.read

    def spy(self: Any, name: str, start: int = 0, stop: int | None = None) -> Array:
        asked[name] = (start, stop)
        return read(self, name, start, stop)

    monkeypatch.setattr(feature_arrays._Hdf5File, "read", spy)
    load_features(path, "test")
    assert asked == {"L_tr": (0, None), "L_te": (0, None), "I_te": (2, 7), "T_te": (2, 7)}
