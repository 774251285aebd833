"""Labelled features for tests: every layout of the field, in every format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

Arrays = dict[str, Any]
HEADER = b"MATLAB 7.3 MAT-file, made for a test".ljust(124) + b"\x00\x02IM"


def write_mat(path: Path, arrays: Arrays) -> Path:
    savemat(path, arrays)
    return path


def write_mat73(path: Path, arrays: Arrays) -> Path:
    """As MATLAB does: HDF5 after a header, columns as rows, the class of the array as attribute."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            array = np.asarray(array)
            file[name] = (array if array.ndim == 2 else array[:, None]).T
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as raw:
        raw.write(HEADER)
    return path


def write_npz(path: Path, arrays: Arrays) -> Path:
    np.savez(path, **arrays)
    return path


def write_h5(path: Path, arrays: Arrays) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


FORMATS: dict[str, tuple[str, Callable[[Path, Arrays], Path]]] = {
    "mat": ("f.mat", write_mat),
    "mat73": ("f.mat", write_mat73),
    "npz": ("f.npz", write_npz),
    "h5": ("f.h5", write_h5),
    "h5py": ("f.h5py", write_h5),
}
# split -> names of images, texts and labels
LAYOUTS = {
    "wikipedia": {"train": ("I_tr", "T_tr", "L_tr"), "test": ("I_te", "T_te", "L_te")},
    "inria": {
        "train": ("tr_img", "tr_txt", "tr_img_lab", "tr_txt_lab"),
        "dev": ("val_img", "val_txt", "val_img_lab", "val_txt_lab"),
        "test": ("te_img", "te_txt", "te_img_lab", "te_txt_lab"),
    },
    "mrl": {
        "train": ("train_imgs_deep", "train_text", "train_imgs_labels", "train_texts_labels"),
        "test": ("test_imgs_deep", "test_texts", "test_imgs_labels", "test_texts_labels"),
    },
    "mrl-valid": {
        "train": ("train_imgs_deep", "train_texts", "train_imgs_labels", "train_texts_labels"),
        "dev": ("valid_imgs_deep", "valid_text", "valid_imgs_labels", "valid_texts_labels"),
        "test": ("test_imgs_deep", "test_texts", "test_imgs_labels", "test_texts_labels"),
    },
    "plain": {
        "train": ("train_images", "train_texts", "train_labels"),
        "dev": ("dev_images", "dev_texts", "dev_labels"),
        "test": ("test_images", "test_texts", "test_labels"),
    },
}
SIZES = {"train": 11, "dev": 4, "test": 7}


def make(layout: str = "wikipedia", **changed: Any) -> Arrays:
    """All arrays of a layout, labels 3, 5, 7 in turn; `changed` replaces some, None removes one."""
    rng = np.random.default_rng(0)
    arrays: Arrays = {}
    for split, (images, texts, *labels) in LAYOUTS[layout].items():
        count = SIZES[split]
        arrays[images] = rng.normal(size=(count, 6))
        arrays[texts] = rng.normal(size=(count, 3))
        arrays |= {name: np.array([3, 5, 7])[np.arange(count) % 3] for name in labels}
    return {name: array for name, array in (arrays | changed).items() if array is not None}
