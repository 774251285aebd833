"""Folders of pictures with a .jsonl table, as training takes them: one caption or all, splits, labels, bad lines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from truepair.data import open as opening
from truepair.data.describe import describe
from truepair.data.open import TABLES, UnusedEntries, format_of, load, splits_of
from truepair.encoders import decode
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError

Line = dict[str, Any]


def noise(seed: int, height: int = 20, width: int = 24, channels: int = 3) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=(height, width, channels), dtype=np.uint8)


def make(folder: Path, lines: list[Line | str] | None = None, *, count: int = 8) -> Path:
    """Pictures p0.png … in a subfolder, and a table of the given lines or one of all pictures with a kind."""
    (folder / "img").mkdir(parents=True, exist_ok=True)
    for k in range(count):
        Image.fromarray(noise(k)).save(folder / "img" / f"p{k}.png")
    if lines is None:
        lines = [line(k, split="dev" if k >= 6 else "train", kind="ab"[k % 2], number=10 - k) for k in range(count)]
    text = "\n".join(entry if isinstance(entry, str) else json.dumps(entry) for entry in lines)
    (folder / "captions.jsonl").write_text(text + "\n", encoding="utf-8")
    return folder


def line(k: int, **others: Any) -> Line:
    return {"image": f"img/p{k}.png", "captions": [f"first {k}", f"second {k}"], **others}


def test_a_table_of_pictures(tmp_path: Path) -> None:
    folder = make(tmp_path / "drawn")
    assert format_of(folder) is TABLES
    assert splits_of(folder) == ("dev", "train")
    pairs = load(folder, "train", label="kind", caption="first")
    assert pairs.name == "drawn/train"
    assert pairs.texts.captions == tuple(f"first {k}" for k in range(6))
    assert pairs.images.ids == tuple(f"img/p{k}.png" for k in range(6))
    assert pairs.ids() == [f"img/p{k}.png#0" for k in range(6)]
    assert pairs.class_names == ("a", "b")
    assert pairs.labels is not None
    assert pairs.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert pairs.images.features.dtype == np.float16
    assert pairs.texts.features is None
    for k in range(6):
        assert np.array_equal(pairs.images.picture(k), noise(k))
        assert np.array_equal(pairs.images.features[k], grid_descriptor(noise(k)).astype(np.float16))
    assert len(load(folder, "val", caption="first")) == 2
    assert load(folder, "dev").labels is None


def test_all_captions_are_pairs(tmp_path: Path) -> None:
    pairs = load(make(tmp_path / "drawn"), "dev")
    assert pairs.texts.captions == ("first 6", "second 6", "first 7", "second 7")
    assert pairs.image_index.tolist() == [0, 0, 1, 1]
    assert pairs.source_rows.tolist() == [6, 6, 7, 7]
    assert pairs.ids() == ["img/p6.png#0", "img/p6.png#1", "img/p7.png#0", "img/p7.png#1"]


def test_a_single_caption_and_no_split(tmp_path: Path) -> None:
    lines = [{"image": f"img/p{k}.png", "caption": f" a \n b {k} "} for k in range(3)]
    folder = make(tmp_path / "a", [*lines[:2], "", lines[2]])
    assert splits_of(folder) == ()
    assert load(folder, "train").texts.captions == ("a b 0", "a b 1", "a b 2")
    with pytest.raises(InputError, match="a has no split 'dev', nor any other; ask for a share of its images instead"):
        load(folder, "dev")


def test_labels_are_numbered_over_all_splits_and_null_is_none(tmp_path: Path) -> None:
    lines: list[Line | str] = [
        line(k, split=split, size=size)
        for k, (split, size) in enumerate(
            [("train", 10), ("train", None), ("train", 9), ("test", 2), ("test", None), ("test", 10)]
        )
    ]
    folder = make(tmp_path / "a", lines)
    train, test = (load(folder, split, label="size", caption="first") for split in ("train", "test"))
    assert train.class_names == test.class_names == ("2", "9", "10")
    assert train.labels is not None
    assert test.labels is not None
    assert train.labels.tolist() == [2, 1]
    assert test.labels.tolist() == [0, 2]
    assert train.texts.captions == ("first 0", "first 2")
    assert test.images.ids == ("img/p3.png", "img/p5.png")
    assert np.array_equal(test.images.picture(1), noise(5))
    assert np.array_equal(test.images.features[1], grid_descriptor(noise(5)).astype(np.float16))
    assert len(load(folder, "train", caption="first")) == 3
    assert describe(folder).splits[0].label_columns == {"size": 3}


def test_columns_that_can_be_labels(tmp_path: Path) -> None:
    lines: list[Line | str] = [
        line(0, kind="a", flag=True, number=1, some=1, share=0.5, tags=["x"], blank=" "),
        line(1, kind="b", flag=False, number=1, share=0.25, tags=["y"], blank="z"),
    ]
    folder = make(tmp_path / "a", lines)
    assert describe(folder).splits[0].label_columns == {"kind": 2, "flag": 2, "number": 1, "some": 1, "blank": 1}
    for column, message in (
        ("share", r"row 0: the column 'share' is 0\.5; expected text or a whole number, or null for none"),
        ("tags", r"row 0: the column 'tags' is \['x'\]"),
        ("sort", r"no column 'sort' for the label; its columns are image, captions, kind, flag, number"),
        ("number", r"the column 'number' holds 1 classes; expected two or more"),
        ("blank", r"the column 'blank' holds 1 classes"),
    ):
        with pytest.raises(InputError, match=message):
            load(folder, "train", label=column)


def test_a_split_without_any_label(tmp_path: Path) -> None:
    lines: list[Line | str] = [line(0, split="train", n=1), line(1, split="train", n=2), line(2, split="dev", n=None)]
    with pytest.raises(InputError, match="a/dev: no pair has a 'n', all are empty"):
        load(make(tmp_path / "a", lines), "dev", label="n")


BAD = {
    "not json": ("{", "not-json", r"line 2 is not JSON"),
    "list": ("[1]", "not-json", "line 2 holds list, not an object; expected one object a line"),
    "no image": ({"captions": ["x"]}, "no-picture-path", "row 1: image is missing; expected the path of a picture"),
    "outside": (
        line(1) | {"image": "../p1.png"},
        "outside-folder",
        r"\.\./p1\.png: the path is absolute or leads outside",
    ),
    "absolute": (line(1) | {"image": "/p1.png"}, "outside-folder", "/p1.png: the path is absolute or leads outside"),
    "no captions": (line(1) | {"captions": []}, "empty-caption", r"img/p1\.png: the row has no caption"),
    "blank": (line(1) | {"captions": ["  ", "x"]}, "empty-caption", "the caption is empty or only spaces"),
    "no split": (line(1), "no-split", "row 1: split is empty, though other rows have one"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines_are_left_out_and_told(tmp_path: Path, case: str) -> None:
    wrong, reason, message = BAD[case]
    others = {"split": "train"} if case == "no split" else {}
    folder = make(tmp_path / "a", [line(0, **others), wrong])
    with pytest.warns(UnusedEntries, match=rf"1 entry cannot be used .*captions\.jsonl.*{message}.*truepair describe"):
        pairs = load(folder, "train", caption="first")
    assert pairs.texts.captions == ("first 0",)
    (problem,) = opening.open(folder, "train", caption="first").problems
    assert (problem.reason, problem.row, problem.used) == (reason, 1, False)


def test_tables_and_splits_that_are_not_there(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    with pytest.raises(InputError, match=r"captions\.jsonl has no split 'test'; its splits are dev, train"):
        load(folder, "test")
    (folder / "more.jsonl").write_text("")
    with pytest.raises(InputError, match=r"several tables: captions\.jsonl, more\.jsonl. Say which .* --table NAME"):
        load(folder, "train")
    assert len(load(folder, "dev", table="captions.jsonl")) == 4
    (folder / "captions.jsonl").unlink()
    with pytest.raises(
        InputError,
        match=r"more\.jsonl has no column of image paths and of captions .*--image COLUMN and --caption COLUMN",
    ):
        load(folder, "train")
    np.save(folder / "train_ims.npy", np.zeros(3))
    assert format_of(folder).holds == "features"


def test_broken_missing_and_tiny_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "a")
    picture = folder / "img" / "p4.png"
    whole = picture.read_bytes()
    for content in (b"", b"no picture", whole[: len(whole) // 2]):
        picture.write_bytes(content)
        with pytest.warns(UnusedEntries, match=r"p4\.png: (the file holds|it cannot be decoded)"):
            assert len(load(folder, "train", caption="first")) == 5
    picture.unlink()
    with pytest.warns(UnusedEntries, match=r"p4\.png: there is no such file.*copy it there, or correct the path"):
        load(folder, "train")
    Image.fromarray(noise(1, 13, 40)).save(picture)
    with pytest.warns(UnusedEntries, match=r"p4\.png: it is 40 x 13 pixels"):
        load(folder, "train")
    monkeypatch.setattr(decode, "_MOST_PIXELS", 500)
    with pytest.raises(
        InputError, match=r"p4\.png cannot be read as a picture \(it has 40 x 13 pixels, and at most 500 are"
    ):
        decode.read_picture(picture)


def test_pixels_for_engines_that_read_them(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    odd = noise(50, 31, 17)
    Image.fromarray(odd).save(folder / "img" / "p3.png")
    images = load(folder, "train").images
    assert images.files is not None and images.pictures is None
    assert np.array_equal(images.features[3], grid_descriptor(odd).astype(np.float16))
    found = images.pixels(np.array([3, 0]), 32)
    assert found.shape == (2, 32, 32, 3) and found.dtype == np.uint8
    for row, pixels in zip(found, (odd, noise(0)), strict=True):
        assert np.array_equal(row, np.asarray(Image.fromarray(pixels).resize((32, 32), Image.Resampling.BICUBIC)))
    assert np.array_equal(images.take(np.array([5, 3])).pixels(np.array([1]), 32)[0], found[0])
    (folder / "img" / "p3.png").unlink()
    with pytest.raises(InputError, match=r"p3\.png: picture 3 its file cannot be read"):
        images.pixels(np.array([3]), 32)
    drawn = load("scenes:2").images
    assert np.array_equal(drawn.pixels(np.array([1]), 96)[0], drawn.pictures[1])


def test_the_real_drawings(emoji: Path) -> None:
    """The smallest split only: describing all takes seconds."""
    test = load(emoji, "test", label="group", caption="first")
    assert len(test) == 870
    assert len(test.class_names) == 9
    assert test.texts.captions[0] == "grinning face"
    assert test.images.picture(0).shape == (72, 72, 3)
    assert np.isfinite(test.images.features).all()
