import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from truepair.data.formats.tables.picture_table import (
    is_picture_table,
    label_columns,
    load_picture_table,
    read_table,
    table_splits,
)
from truepair.data.pictures import picture_features
from truepair.data.pictures.descriptor import grid_descriptor
from truepair.data.pictures.picture_features import LONGEST_SIDE, read_picture
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
    assert is_picture_table(folder)
    assert table_splits(folder) == ("dev", "train")
    pairs = load_picture_table(folder, "train", label="kind")
    assert pairs.name == "drawn/train"
    assert pairs.texts.captions == tuple(f"first {k}" for k in range(6))
    assert pairs.images.ids == pairs.texts.ids == tuple(f"img/p{k}.png" for k in range(6))
    assert pairs.class_names == ("a", "b")
    assert pairs.labels is not None
    assert pairs.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert pairs.images.features.dtype == np.float16
    assert pairs.images.pictures is not None
    assert pairs.texts.features is None
    for k in range(6):
        assert np.array_equal(pairs.images.pictures[k], noise(k))
        assert np.array_equal(pairs.images.features[k], grid_descriptor(noise(k)).astype(np.float16))
    assert len(load_picture_table(folder, "val")) == 2
    assert load_picture_table(folder, "dev").labels is None


def test_a_single_caption_and_no_split(tmp_path: Path) -> None:
    lines = [{"image": f"img/p{k}.png", "caption": f" a \n b {k} "} for k in range(3)]
    folder = make(tmp_path / "a", [*lines[:2], "", lines[2]])
    assert table_splits(folder) == ("train",)
    assert load_picture_table(folder, "train").texts.captions == ("a b 0", "a b 1", "a b 2")


def test_labels_are_numbered_over_all_splits_and_null_is_none(tmp_path: Path) -> None:
    lines: list[Line | str] = [
        line(k, split=split, size=size)
        for k, (split, size) in enumerate(
            [("train", 10), ("train", None), ("train", 9), ("test", 2), ("test", None), ("test", 10)]
        )
    ]
    folder = make(tmp_path / "a", lines)
    train, test = (load_picture_table(folder, split, label="size") for split in ("train", "test"))
    assert train.class_names == test.class_names == ("2", "9", "10")
    assert train.labels is not None
    assert test.labels is not None
    assert train.labels.tolist() == [2, 1]
    assert test.labels.tolist() == [0, 2]
    assert train.texts.captions == ("first 0", "first 2")
    assert test.images.ids == ("img/p3.png", "img/p5.png")
    assert test.images.pictures is not None
    assert np.array_equal(test.images.pictures[1], noise(5))
    assert np.array_equal(test.images.features[1], grid_descriptor(noise(5)).astype(np.float16))
    assert len(load_picture_table(folder, "train")) == 3
    assert label_columns(read_table(folder)) == {"size": 3}


def test_columns_that_can_be_labels(tmp_path: Path) -> None:
    lines: list[Line | str] = [
        line(0, kind="a", flag=True, number=1, some=1, share=0.5, tags=["x"], blank=" "),
        line(1, kind="b", flag=False, number=1, share=0.25, tags=["y"], blank="z"),
    ]
    assert label_columns(read_table(make(tmp_path / "a", lines))) == {"kind": 2, "flag": 2, "number": 1}
    for column, message in (
        ("share", r"line 1: the column 'share' is 0\.5; expected text or a whole number, or null for none"),
        ("some", r"line 2: the column 'some' is missing;.*numbers of classes: kind \(2\), flag \(2\), number \(1\)"),
        ("tags", r"line 1: the column 'tags' is \['x'\]"),
        ("blank", r"line 1: the column 'blank' is ' '"),
        ("image", r"line 1: the column 'image' is missing"),
        ("number", r"the column 'number' holds 1 classes; expected two or more"),
    ):
        with pytest.raises(InputError, match=message):
            load_picture_table(tmp_path / "a", "train", label=column)


def test_a_split_without_any_label(tmp_path: Path) -> None:
    lines: list[Line | str] = [line(0, split="train", n=1), line(1, split="train", n=2), line(2, split="dev", n=None)]
    with pytest.raises(InputError, match="no line of split 'dev' has a 'n', all are null"):
        load_picture_table(make(tmp_path / "a", lines), "dev", label="n")


BAD = {
    "not json": ("{", r"line 2 is not JSON"),
    "list": ("[1]", "line 2 holds list; expected an object"),
    "no image": ({"captions": ["x"]}, "line 2: image is None; expected the path of a picture inside"),
    "outside": (line(1) | {"image": "../p1.png"}, r"line 2: image is '\.\./p1\.png'"),
    "absolute": (line(1) | {"image": "/p1.png"}, "line 2: image is '/p1.png'"),
    "no captions": (line(1) | {"captions": []}, "line 2: the first caption is None"),
    "blank": (line(1) | {"captions": ["  ", "x"]}, "line 2: the first caption is '  '"),
    "text": (line(1) | {"captions": "word"}, "line 2: the first caption is None"),
    "split": (line(1, split=3), "line 2: split is 3; expected a name"),
    "some splits": (line(1, split="train"), "line 1: no split, though other lines have one"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines(tmp_path: Path, case: str) -> None:
    wrong, message = BAD[case]
    folder = make(tmp_path / "a", [line(0), wrong])
    with pytest.raises(InputError, match=r"captions\.jsonl, " + message):
        load_picture_table(folder, "train")


def test_tables_and_splits_that_are_not_there(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    with pytest.raises(InputError, match=r"captions\.jsonl has no split 'test'; its splits are dev, train"):
        load_picture_table(folder, "test")
    (folder / "more.jsonl").write_text("")
    with pytest.raises(InputError, match=r"found the tables captions\.jsonl, more\.jsonl; expected one"):
        load_picture_table(folder, "train")
    (folder / "captions.jsonl").unlink()
    with pytest.raises(InputError, match=r"more\.jsonl is empty"):
        load_picture_table(folder, "train")
    np.save(folder / "train_ims.npy", np.zeros(3))
    assert not is_picture_table(folder)
    assert not is_picture_table(tmp_path / "nowhere")


# ---- pictures ----


def test_pictures_are_upright_and_on_white(tmp_path: Path) -> None:
    clear = np.dstack([noise(1), np.zeros((20, 24), np.uint8)])
    clear[:, :12, 3] = 255
    Image.fromarray(clear).save(tmp_path / "clear.png")
    found = read_picture(tmp_path / "clear.png")
    assert np.array_equal(found[:, :12], clear[:, :12, :3])
    assert (found[:, 12:] == 255).all()

    Image.fromarray(noise(2, channels=1)[..., 0]).save(tmp_path / "grey.png")
    assert np.array_equal(read_picture(tmp_path / "grey.png"), noise(2, channels=1).repeat(3, axis=2))

    turned = Image.Exif()
    turned[0x0112] = 6  # to be shown turned by 90 degrees
    Image.fromarray(noise(3)).save(tmp_path / "turned.png", exif=turned)
    assert np.array_equal(read_picture(tmp_path / "turned.png"), np.rot90(noise(3), -1))


def test_large_pictures_are_shrunk(tmp_path: Path) -> None:
    Image.fromarray(noise(1, 300, 600)).save(tmp_path / "large.png")
    assert read_picture(tmp_path / "large.png").shape == (LONGEST_SIDE // 2, LONGEST_SIDE, 3)


def test_pictures_of_different_sizes_have_features_but_no_array_of_pixels(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    odd = noise(50, 31, 17)
    Image.fromarray(odd).save(folder / "img" / "p3.png")
    images = load_picture_table(folder, "train").images
    assert images.pictures is None
    assert np.array_equal(images.features[3], grid_descriptor(odd).astype(np.float16))
    assert np.array_equal(images.features[5], grid_descriptor(noise(5)).astype(np.float16))


def test_broken_missing_and_tiny_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "a")
    picture = folder / "img" / "p4.png"
    whole = picture.read_bytes()
    for content in (b"", b"no picture", whole[: len(whole) // 2]):
        picture.write_bytes(content)
        with pytest.raises(InputError, match=r"p4\.png cannot be read as a picture \(.*remove its line"):
            load_picture_table(folder, "train")
    picture.unlink()
    with pytest.raises(InputError, match=r"p4\.png cannot be read \(No such file.*Copy it there, or remove its line"):
        load_picture_table(folder, "train")
    Image.fromarray(noise(1, 13, 40)).save(picture)
    with pytest.raises(InputError, match=r"p4\.png: a picture is 13 x 40 pixels"):
        load_picture_table(folder, "train")
    monkeypatch.setattr(picture_features, "_MOST_PIXELS", 500)
    with pytest.raises(InputError, match=r"p4\.png cannot be read as a picture \(it claims 40 x 13 pixels\)"):
        read_picture(picture)
    assert len(load_picture_table(make(folder), "dev")) == 2


def test_an_open_file_is_read_like_a_path_and_postscript_is_refused(tmp_path: Path) -> None:
    from io import BytesIO

    picture = tmp_path / "p.png"
    Image.fromarray(noise(1)).save(picture)
    assert np.array_equal(read_picture(BytesIO(picture.read_bytes())), noise(1))
    picture.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n%%EndComments\nshowpage\n")
    with pytest.raises(InputError, match=r"p\.png cannot be read .*it is PostScript") as caught:
        read_picture(picture)
    assert isinstance(caught.value.__cause__, picture_features.PostScript)


# ---- the cache ----


def forget() -> None:
    picture_features._describe_files.cache_clear()


def test_features_are_kept_on_disk_and_in_memory(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "a")
    first = load_picture_table(folder, "train").images
    (kept,) = cache.iterdir()
    assert np.array_equal(np.load(kept, allow_pickle=False), first.features)
    assert load_picture_table(folder, "train").images.features is first.features
    with pytest.raises(ValueError, match="read-only"):
        first.features[0] = 0

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the features are in the cache")

    forget()
    with monkeypatch.context() as patched:
        patched.setattr(picture_features, "grid_descriptor", refuse)
        again = load_picture_table(folder, "train", label="kind").images
    assert np.array_equal(again.features, first.features)
    assert again.pictures is not None
    assert np.array_equal(again.pictures, first.pictures)


def test_a_changed_picture_is_described_anew(tmp_path: Path, cache: Path) -> None:
    folder = make(tmp_path / "a")
    before = load_picture_table(folder, "train").images.features
    Image.fromarray(noise(99)).save(folder / "img" / "p2.png")
    after = load_picture_table(folder, "train").images.features
    assert [row for row in range(6) if not np.array_equal(before[row], after[row])] == [2]
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"no array", "wrong shape", "not finite"])
def test_a_damaged_cache_is_ignored_and_written_again(tmp_path: Path, cache: Path, content: Any) -> None:
    folder = make(tmp_path / "a")
    expected = load_picture_table(folder, "train").images.features
    (kept,) = cache.iterdir()
    good = kept.read_bytes()
    if isinstance(content, bytes):
        kept.write_bytes(content)
    else:
        np.save(kept, np.zeros((5, 36, 56), np.float16) if content == "wrong shape" else np.full_like(expected, np.nan))
    forget()
    assert np.array_equal(load_picture_table(folder, "train").images.features, expected)
    assert kept.read_bytes() == good


def test_without_a_cache_folder_it_works_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TRUEPAIR_CACHE", str(blocked / "cache"))
    assert len(load_picture_table(make(tmp_path / "a"), "train")) == 6


def test_the_real_drawings(emoji: Path) -> None:
    """The smallest split only: describing all takes seconds."""
    test = load_picture_table(emoji, "test", label="group")
    assert len(test) == 870
    assert len(test.class_names) == 9
    assert test.texts.captions[0] == "grinning face"
    assert test.images.pictures is not None
    assert test.images.pictures.shape == (870, 72, 72, 3)
    assert np.isfinite(test.images.features).all()
