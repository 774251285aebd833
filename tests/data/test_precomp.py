import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from truepair.data.formats.precomp import precomp_files
from truepair.data.formats.precomp.precomp import load_precomp
from truepair.data.formats.precomp.precomp_files import available_splits, read_split
from truepair.data.formats.precomp.precomp_problems import find_problems
from truepair.data.pairs import Array
from truepair.errors import InputError


def features(images: int, *, regions: int = 3, width: int = 4) -> Array:
    return np.random.default_rng(0).normal(size=(images, regions, width)).astype(np.float32)


def put(folder: Path, split: str = "train", *, images: int = 4, per_image: int = 1) -> Path:
    """A sound split; tests then damage one of its files."""
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{split}_ims.npy", features(images))
    captions = "".join(f"caption {c} of {split}\n" for c in range(images * per_image))
    (folder / f"{split}_caps.txt").write_text(captions, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put(tmp_path / "toy_precomp")


def real_data() -> Path:
    root = Path(os.environ.get("TRUEPAIR_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / "fashion_precomp").is_dir():
        pytest.skip(f"{root / 'fashion_precomp'} is absent; set TRUEPAIR_DATA to the folder that holds it")
    return root / "fashion_precomp"


# ---- what is read ----


def test_the_plain_case(folder: Path) -> None:
    pairs = load_precomp(folder, "train")
    assert pairs.name == "toy_precomp/train"
    assert isinstance(pairs.images.features, np.memmap)
    assert not pairs.images.features.flags.writeable
    assert np.array_equal(pairs.images.features, features(4))
    assert pairs.texts.captions[0] == "caption 0 of train"
    assert pairs.image_index.tolist() == pairs.text_index.tolist() == [0, 1, 2, 3]
    assert pairs.images.ids == pairs.texts.ids == ("0", "1", "2", "3")
    assert pairs.true_image is None
    assert pairs.labels is None
    assert pairs.class_names == ()


def test_five_captions_an_image(tmp_path: Path) -> None:
    pairs = load_precomp(put(tmp_path / "a", images=3, per_image=5), "train")
    assert pairs.image_index.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert pairs.texts.ids[4:6] == ("0#4", "1#0")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_one_vector_an_image_in_both_types(folder: Path, dtype: type) -> None:
    np.save(folder / "train_ims.npy", features(4)[:, 0].astype(dtype))
    read = load_precomp(folder, "train").images.features
    assert read.shape == (4, 4)
    assert read.dtype == dtype


def test_tsv_captions_and_their_names(folder: Path) -> None:
    (folder / "train_caps.txt").unlink()
    (folder / "train_caps.tsv").write_text('n1\ta "quoted" hat\nn2\tb\nn3\tc\nn4\td \n', encoding="utf-8")
    pairs = load_precomp(folder, "train")
    assert pairs.texts.captions == ('a "quoted" hat', "b", "c", "d")
    assert pairs.texts.ids == pairs.images.ids == ("n1", "n2", "n3", "n4")


def test_txt_wins_over_tsv(folder: Path) -> None:
    (folder / "train_caps.tsv").write_text("n1\tx\n", encoding="utf-8")
    assert load_precomp(folder, "train").texts.captions[0] == "caption 0 of train"


@pytest.mark.parametrize(
    ("lines", "image_ids", "text_ids"),
    [
        ("a b", ("a", "b"), ("a#0", "a#1", "b#0", "b#1")),
        ("a a b b", ("a", "b"), ("a#0", "a#1", "b#0", "b#1")),
        ("p q r s", ("0", "1"), ("p", "q", "r", "s")),
    ],
)
def test_ids_of_images_or_captions(
    tmp_path: Path, lines: str, image_ids: tuple[str, ...], text_ids: tuple[str, ...]
) -> None:
    folder = put(tmp_path / "a", images=2, per_image=2)
    (folder / "train_ids.txt").write_text("\n".join(lines.split()), encoding="utf-8")
    pairs = load_precomp(folder, "train")
    assert (pairs.images.ids, pairs.texts.ids) == (image_ids, text_ids)


def test_byte_order_mark_windows_line_ends_and_odd_separators(folder: Path) -> None:
    # U+2028, form feed and U+0085 end a line for str.splitlines, but not in these files.
    text = "\ufeffcafé\r\na\u2028b\r\nc\fd\r\ne\u0085f"
    (folder / "train_caps.txt").write_bytes(text.encode("utf-8"))
    (folder / "train_meta.tsv").write_bytes("\ufeffkind\r\nx\r\ny\r\nx\r\nx\r\n".encode())
    pairs = load_precomp(folder, "train", label="kind")
    assert pairs.texts.captions == ("café", "a\u2028b", "c\fd", "e\u0085f")
    assert pairs.class_names == ("x", "y")


def test_labels_agree_between_splits(tmp_path: Path) -> None:
    folder = put(put(tmp_path / "a", "train", images=2, per_image=2), "test", images=2)
    (folder / "train_meta.tsv").write_text("id\tkind\n0\tshoe\n1\tbelt\n", encoding="utf-8")
    (folder / "test_meta.tsv").write_text("id\tkind\n0\tshoe\n1\tcap\n", encoding="utf-8")
    train, test = (load_precomp(folder, split, label="kind") for split in ("train", "test"))
    assert train.class_names == test.class_names == ("belt", "cap", "shoe")
    assert train.labels is not None
    assert train.labels.dtype == np.int64
    assert train.labels.tolist() == [2, 2, 0, 0]  # one row an image
    assert test.labels is not None
    assert test.labels.tolist() == [2, 1]
    (folder / "train_meta.tsv").write_text("kind\nshoe\nbelt\ncap\ncap\n", encoding="utf-8")
    train = load_precomp(folder, "train", label="kind")
    assert train.labels is not None
    assert train.labels.tolist() == [2, 0, 1, 1]  # one row a caption


def test_available_splits(tmp_path: Path) -> None:
    folder = put(put(tmp_path / "a", "train"), "dev")
    assert available_splits(folder) == ("dev", "train")
    (folder / "test_caps.txt").write_text("a\n")
    assert available_splits(str(folder)) == ("dev", "test", "train")


@pytest.mark.parametrize(("there", "asked"), [("val", "dev"), ("dev", "val"), ("testall", "test")])
def test_splits_that_stand_for_each_other(tmp_path: Path, there: str, asked: str) -> None:
    pairs = load_precomp(put(tmp_path / "a", there), asked)
    assert pairs.name == f"a/{there}"
    put(tmp_path / "a", asked)
    assert load_precomp(tmp_path / "a", asked).name == f"a/{asked}"


def test_testall_does_not_fall_back_to_test(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no split 'testall'"):
        load_precomp(put(tmp_path / "a", "test"), "testall")


def test_folder_name_of_a_relative_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load_precomp(".", "train").name == "toy_precomp/train"


def test_fashion() -> None:
    folder = real_data()
    assert available_splits(folder) == ("dev", "test", "train")
    train, test = (load_precomp(folder, split, label="articleType") for split in ("train", "test"))
    assert train.images.features.shape == (12000, 36, 56)
    assert train.images.features.dtype == np.float16
    assert (len(test), test.images.ids[0], test.texts.captions[0]) == (1000, "40747", "Roxy Women Beige Cap")
    assert test.class_names == train.class_names
    assert test.labels is not None
    assert test.class_names[test.labels[0]] == "Caps"


# ---- what is refused ----


def save(array: Array) -> Callable[[Path], object]:
    return lambda folder: np.save(folder / "train_ims.npy", array)


def text(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content.encode("utf-8") if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def with_nan(row: int, region: int, value: float) -> Array:
    array = features(4)
    array[row, region, 2] = value
    return array


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty caption": (
        text("train_caps.txt", "a\n \nc\nd\n"),
        r"train_caps\.txt, line 2: the caption is empty; expected at least one word\. Write the caption, or remove",
    ),
    "two newlines at the end": (text("train_caps.txt", "a\nb\nc\n\n"), r"_caps\.txt, line 4: the caption is empty"),
    "no captions": (text("train_caps.txt", ""), r"train_caps\.txt: it is empty; expected one caption a line"),
    "latin-1": (
        text("train_caps.txt", b"a\nb\ncaf\xe9\nd\n"),
        r"train_caps\.txt, line 3: byte 0xe9 at character 4 is not UTF-8\. Save the file as UTF-8",
    ),
    "counts": (
        text("train_caps.txt", "a\n" * 7),
        r"train_caps\.txt: it has 7 captions for the 4 images of train_ims\.npy; expected the same number for each",
    ),
    "too few": (text("train_caps.txt", "a\n" * 3), r"it has 3 captions for the 4 images of train_ims\.npy"),
    "NaN": (
        save(with_nan(2, 1, np.nan)),
        r"train_ims\.npy, image 2 \(from 0\): region 1 \(from 0\) holds nan; expected finite.*Extract the features",
    ),
    "infinite": (save(with_nan(3, 0, -np.inf)), r"train_ims\.npy, image 3 \(from 0\): region 0 \(from 0\) holds -inf"),
    "NaN vector": (save(with_nan(1, 0, np.nan)[:, 0]), r"image 1 \(from 0\): its vector holds nan"),
    "float64": (
        save(features(4).astype(np.float64)),
        r'its type is float64; expected float16 or float32.*p = ".*train_ims\.npy"; np\.save\(p, np\.load\(p\)\.astype',
    ),
    "integers": (save(np.ones((4, 3, 4), np.int64)), "its type is int64; expected float16 or float32"),
    "rank 1": (save(np.ones(4, np.float32)), r"its shape is \(4,\); expected \(images, regions, width\) or"),
    "rank 4": (save(np.ones((4, 1, 1, 1), np.float32)), r"its shape is \(4, 1, 1, 1\)"),
    "rank 0": (save(np.array(1, np.float32)), r"its shape is \(\)"),
    "no images": (save(np.ones((0, 3, 4), np.float32)), r"its shape is \(0, 3, 4\); .* none of them 0"),
    "pickle": (text("train_ims.npy", pickle.dumps([1])), r"train_ims\.npy: it is not a plain \.npy array \(.*Copy"),
    "cut": (lambda f: os.truncate(f / "train_ims.npy", 200), r"train_ims\.npy: it is not a plain \.npy array \(mmap"),
    "no captions file": (
        lambda f: (f / "train_caps.txt").unlink(),
        r"train_caps\.txt: the file is missing; expected the captions of split 'train'\. The folder holds train_ims",
    ),
    "no features file": (
        lambda f: (f / "train_ims.npy").unlink(),
        r"train_ims\.npy: the file is missing; expected the features .* The folder holds train_caps\.txt: copy",
    ),
    "ids": (
        text("train_ids.txt", "a\nb\n"),
        r"train_ids\.txt: it has 2 rows; expected 4 \(one an image\) or 4 \(one a caption\)\. Check .* optional",
    ),
    "empty id": (text("train_ids.txt", "a\nb\n\nd\n"), r"train_ids\.txt, line 3: the name is empty"),
    "id bytes": (text("train_ids.txt", b"a\nb\nc\n\xff\n"), r"train_ids\.txt, line 4: byte 0xff"),
    "meta rows": (text("train_meta.tsv", "kind\na\n"), r"train_meta\.tsv: it has 1 rows; expected 4 \(one an image\)"),
    "meta columns": (
        text("train_meta.tsv", "id\tkind\n0\ta\n1\n2\ta\n3\ta\n"),
        r"train_meta\.tsv, line 3: the line has 1 columns \('1'\); the header has 2\. Separate the columns",
    ),
    "meta bytes": (text("train_meta.tsv", b"kind\na\nb\nc\n\xff\n"), r"train_meta\.tsv, line 5: byte 0xff"),
    "meta empty": (text("train_meta.tsv", ""), r"train_meta\.tsv: it is empty; expected a header line"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(folder: Path, case: str) -> None:
    damage, message = BAD[case]
    damage(folder)
    with pytest.raises(InputError, match=message) as caught:
        load_precomp(folder, "train")
    assert str(folder) in str(caught.value)


def test_tsv_rows_need_two_columns(folder: Path) -> None:
    (folder / "train_caps.txt").unlink()
    (folder / "train_caps.tsv").write_text("1\ta\nb\n3\tc\td\n4\t \n")
    assert [str(p).rpartition(". ")[0] for p in find_problems(read_split(folder, "train"))] == [
        "train_caps.tsv, line 2: the line has 1 columns ('b'); expected 2: id TAB caption",
        "train_caps.tsv, line 3: the line has 3 columns ('3\\tc\\td'); expected 2: id TAB caption",
        "train_caps.tsv, line 4: the caption is empty; expected at least one word",
    ]


def test_labels_are_checked_in_every_split(folder: Path) -> None:
    with pytest.raises(InputError, match=r"train_meta\.tsv: the file is missing; expected the label column 'kind'"):
        load_precomp(folder, "train", label="kind")
    (folder / "train_meta.tsv").write_text("id\tkind\n" + "0\ta\n" * 4)
    with pytest.raises(InputError, match=r"train_meta\.tsv: it has no column 'knd'; its columns are id, kind\. Choose"):
        load_precomp(folder, "train", label="knd")
    (folder / "test_meta.tsv").write_text("id\tsort\n0\ta\n")
    with pytest.raises(InputError, match=r"test_meta\.tsv: it has no column 'kind'; its columns are id, sort"):
        load_precomp(folder, "train", label="kind")
    (folder / "test_meta.tsv").write_text("id\tkind\n0\ta\n1\t\n")
    with pytest.raises(InputError, match=r"test_meta\.tsv, line 3: the column 'kind' is empty\. Fill in the class"):
        load_precomp(folder, "train", label="kind")
    (folder / "test_meta.tsv").write_bytes(b"id\tkind\n0\t\xe9\n")
    with pytest.raises(InputError, match=r"test_meta\.tsv, line 2: byte 0xe9 at character 3 is not UTF-8"):
        load_precomp(folder, "train", label="kind")


def test_missing_folder_and_split(folder: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere is not a folder that can be read \(No such file.*Check the path"):
        load_precomp(folder / "nowhere", "train")
    with pytest.raises(
        InputError,
        match=r"toy_precomp has no split 'test'; expected test_ims\.npy and test_caps\.txt \(or \.tsv\)\. "
        r"It holds train_caps\.txt, train_ims\.npy\. Choose one of its splits \(train\)",
    ):
        load_precomp(folder, "test")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"It holds no files\. .*\(it has none\)"):
        load_precomp(folder / "empty", "test")


def test_the_first_problem_is_told_and_the_others_are_counted(folder: Path) -> None:
    (folder / "train_caps.txt").write_text("\n\nc\n\n")
    np.save(folder / "train_ims.npy", with_nan(0, 0, np.nan))
    with pytest.raises(InputError, match=r"line 1: the caption is empty.* \(and 3 more problems: `truepair describe"):
        load_precomp(folder, "train")


def test_every_chunk_is_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = features(4)
    array[0, 2, 0] = array[3, 1, 3] = np.nan
    np.save(folder / "train_ims.npy", array)
    monkeypatch.setattr(precomp_files, "_CHUNK_BYTES", 2 * array[0].nbytes)
    assert [start for start, _ in precomp_files.chunks(array)] == [0, 2]
    problems = find_problems(read_split(folder, "train"))
    assert [(p.row, p.detail[:8]) for p in problems] == [(0, "region 2"), (3, "region 1")]
    monkeypatch.setattr(precomp_files, "_CHUNK_BYTES", 1)
    assert [len(rows) for _, rows in precomp_files.chunks(array)] == [1] * 4
