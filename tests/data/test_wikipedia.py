"""The Wikipedia set as distributed: its splits, its lists of labels, and the real one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from tests.data.made_features import SIZES, make
from truepair.data.config import Reading
from truepair.data.formats.labelled.feature_files import pairs_of, splits_in
from truepair.data.formats.labelled.wikipedia import CLASSES, Wikipedia
from truepair.errors import InputError


def load_wikipedia(folder, split, **options):
    return pairs_of(Wikipedia().read(folder), split, **options)


def wikipedia_splits(folder):
    return splits_in(Wikipedia().read(folder))


def write_wikipedia(folder: Path, *, test_lines: list[str] | None = None, **changed: Any) -> Path:
    folder.mkdir(exist_ok=True)
    savemat(folder / "raw_features.mat", make(L_tr=None, L_te=None, **changed))
    lines = {split: [f"text{k}\timage{k}\t{k % 10 + 1}" for k in range(SIZES[split])] for split in ("train", "test")}
    lines["test"] = test_lines or lines["test"]
    for split, content in lines.items():
        (folder / f"{split}set_txt_img_cat.list").write_text("\n".join(content) + "\n", encoding="utf-8")
    return folder


def test_wikipedia_in_small(tmp_path: Path) -> None:
    folder = write_wikipedia(tmp_path / "wiki")
    assert Wikipedia().recognises(folder, Reading())
    assert wikipedia_splits(folder) == ("train", "dev", "test")
    test = load_wikipedia(folder, "test")
    assert test.name == "wiki/test"
    assert test.labels is not None
    assert test.labels.tolist() == [2, 3, 4, 5, 6]
    assert test.class_names == CLASSES
    assert test.texts.captions == tuple(f"text{k}" for k in range(2, 7))
    assert test.images.ids == tuple(f"image{k}" for k in range(2, 7))
    assert len(load_wikipedia(folder, "dev", dev_pairs=6)) == 6


def test_wikipedia_lists_are_checked(tmp_path: Path) -> None:
    good = [f"t\ti\t{k + 1}" for k in range(7)]
    for wrong in ("t\ti", "t\ti\t0", "t\ti\t11", "t\ti\tx", "t\ti\t1\t2", "", "t\ti\t²"):
        folder = write_wikipedia(tmp_path / "wiki", test_lines=[*good[:3], wrong, *good[4:]])
        with pytest.raises(InputError, match=r"testset_txt_img_cat\.list, line 4: found .*a class from 1 to 10"):
            load_wikipedia(folder, "train")
    folder = write_wikipedia(tmp_path / "wiki", test_lines=good[:-1])
    with pytest.raises(InputError, match="I_te has 7 rows, but there are 6 test labels"):
        load_wikipedia(folder, "train")
    (folder / "trainset_txt_img_cat.list").unlink()
    with pytest.raises(InputError, match=r"trainset_txt_img_cat\.list cannot be read .*Copy it there"):
        load_wikipedia(folder, "train")


def test_the_real_wikipedia(wikipedia: Path) -> None:
    sizes = {split: len(load_wikipedia(wikipedia, split)) for split in wikipedia_splits(wikipedia)}
    assert sizes == {"train": 2173, "dev": 231, "test": 462}
    train = load_wikipedia(wikipedia, "train")
    assert train.labels is not None
    counts = dict(zip(train.class_names, np.bincount(train.labels).tolist(), strict=True))
    assert counts["warfare"] == 347
    assert counts["art"] == 138
    assert train.images.feature_width == 128
    assert train.texts.feature_width == 10
