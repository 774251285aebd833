import json
from pathlib import Path

import numpy as np
import pytest

from truepair.data.describe import describe
from truepair.data.description import Range
from truepair.data.formats.precomp import precomp_files
from truepair.data.formats.precomp.precomp import load_precomp
from truepair.data.noise import inject_noise
from truepair.data.pairs import Array
from truepair.errors import InputError


def put(folder: Path, split: str, features: Array, captions: str | bytes, meta: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{split}_ims.npy", features)
    data = captions.encode("utf-8") if isinstance(captions, str) else captions
    (folder / f"{split}_caps.txt").write_bytes(data)
    if meta is not None:
        (folder / f"{split}_meta.tsv").write_text(meta, encoding="utf-8")
    return folder


def some_features(images: int) -> Array:
    return np.random.default_rng(0).normal(size=(images, 3, 4)).astype(np.float32)


@pytest.fixture
def flawed(tmp_path: Path) -> Path:
    """Five images: 4 repeats 0, 2 is all zero, 3 has one zero region and one NaN; caption 3 is empty, 4 repeats 0."""
    features = some_features(5)
    features[4] = features[0]
    features[2] = 0
    features[3, 1] = 0
    features[3, 2, 0] = np.nan
    captions = "a red hat\na red shoe\nred\n\na red hat\n"
    return put(tmp_path / "toy", "train", features, captions, "id\tkind\n0\ta\n1\tb\n2\ta\n3\ta\n4\ta\n")


def test_counts_of_a_flawed_split(flawed: Path) -> None:
    (split,) = describe(flawed).splits
    images, captions = split.images, split.captions
    assert images is not None
    assert (images.count, images.shape, images.dtype, images.bytes) == (5, (5, 3, 4), "float32", 240)
    assert (images.zero_images, images.zero_regions) == (1, 4)
    assert (images.repeated, images.repeated_example, images.not_finite) == (1, (0, 4), 1)
    assert (captions.count, captions.empty, captions.words) == (5, 1, Range(0, 2.0, 3))
    assert (captions.distinct_words, captions.distinct_words_4) == (4, 1)
    assert (captions.repeated, captions.repeated_example) == (1, ("a red hat", 2))
    assert split.captions_per_image == Range(1, 1, 1)
    assert split.label_columns == {"id": 5, "kind": 2}
    assert split.mismatch_rate is None
    assert [(p.file, p.entry, p.row) for p in split.problems] == [
        ("train_caps.txt", "line 4", 3),
        ("train_ims.npy", "image 3 (from 0)", 3),
    ]
    assert split.problem_count == 2


def test_chunks_do_not_change_the_counts(flawed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = describe(flawed)
    monkeypatch.setattr(precomp_files, "_CHUNK_BYTES", 100)
    assert describe(flawed) == whole


def test_render_says_it_all(flawed: Path) -> None:
    text = describe(flawed).render()
    for part in (
        str(flawed),
        "(5, 3, 4) float32",
        "1 (image 4 is image 0 again, from 0)",
        "1 ('a red hat' occurs 2 times)",
        "2.0 (0 to 3)",
        "4, 1 of them at least 4 times",
        "id (5), kind (2)",
        "problems: 2",
        "train_caps.txt, line 4: the caption is empty; expected at least one word. Write the caption",
        "train_ims.npy, image 3 (from 0): region 2 (from 0) holds nan",
    ):
        assert part in text


def test_to_dict_is_json(flawed: Path) -> None:
    content = describe(flawed).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["splits"][0]["problems"][0]["row"] == 3
    assert content["splits"][0]["images"]["shape"] == [5, 3, 4]


def test_bad_bytes_can_be_shown(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", "train", some_features(2), b"caf\xe9 \xe9\ncaf\xe9 \xe9\n")
    (folder / "train_meta.tsv").write_bytes(b"\xe9\na\nb\n")
    description = describe(folder)
    description.render().encode("utf-8")
    json.dumps(description.to_dict(), ensure_ascii=False).encode("utf-8")
    assert description.splits[0].problem_count == 3


def test_long_lists_of_problems_are_cut_but_counted(tmp_path: Path) -> None:
    description = describe(put(tmp_path / "a", "train", some_features(50), "\n" * 50))
    assert len(description.splits[0].problems) == 20
    assert description.splits[0].problem_count == 50
    assert "and 30 more" in description.render()


@pytest.mark.parametrize(
    "features",
    [
        np.ones((0, 3, 4), np.float32),
        np.ones((2, 3, 4, 5), np.float32),
        np.ones(2, np.float32),
        np.array(1.0, np.float32),
        np.array([["a", "b"]]),
        np.ones((2, 3), np.int64),
        np.ones((2, 3), np.float64),
    ],
)
def test_odd_arrays_do_not_raise(tmp_path: Path, features: Array) -> None:
    description = describe(put(tmp_path / "a", "train", features, "a\nb\n"))
    assert description.splits[0].problem_count >= 1
    assert "problems: " in description.render()


def test_missing_and_broken_files_do_not_raise(tmp_path: Path) -> None:
    folder = put(tmp_path / "a", "train", some_features(2), "a\nb\nc\n", "")
    (folder / "train_ids.txt").write_bytes(b"")
    put(folder, "dev", some_features(2), "a\nb\n")
    (folder / "dev_ims.npy").write_bytes(b"not an array")
    (folder / "test_caps.txt").write_bytes(b"")
    dev, test, train = describe(folder).splits
    assert (dev.name, test.name, train.name) == ("dev", "test", "train")
    assert dev.images is None
    assert "not a plain .npy" in dev.problems[0].detail
    assert test.captions.words is None
    assert [p.file for p in test.problems] == ["test_ims.npy", "test_caps.txt"]
    assert train.captions_per_image is None
    assert train.problem_count == 3
    text = describe(folder).render()
    assert "the features cannot be opened" in text
    assert "the counts do not fit each other" in text


def test_splits_of_other_widths_are_told(tmp_path: Path) -> None:
    put(tmp_path / "a", "train", some_features(2), "a\nb\n")
    put(tmp_path / "a", "dev", some_features(2)[..., :3], "a\nb\n")
    put(tmp_path / "a", "test", some_features(2)[:, :2], "a\nb\n")  # fewer regions, of the same width
    described = describe(tmp_path / "a")
    dev, test, train = described.splits
    assert (dev.problem_count, test.problem_count, train.problem_count) == (1, 0, 0)
    assert dev.problems[0].reason == "other-width"
    assert "dev: its image features are 3 wide, those of train 4; a model takes one width" in described.render()


def test_only_a_missing_folder_or_split_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere does not exist"):
        describe(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"(?s)is none of the inputs.*precomp layout \(train_ims.npy, train_caps.txt"):
        describe(tmp_path)
    put(tmp_path / "a", "train", some_features(1), "a\n")
    with pytest.raises(InputError, match="no split 'test'"):
        describe(tmp_path / "a", splits=["train", "test"])


def test_pairs(tmp_path: Path) -> None:
    captions = "".join(f"caption {c}\n" for c in range(20))
    folder = put(tmp_path / "a", "train", some_features(10), captions, "kind\n" + "x\ny\n" * 5)
    pairs = inject_noise(load_precomp(folder, "train", label="kind"), 1.0, seed=1)
    (split,) = describe(pairs).splits
    assert split.name == "a/train"
    assert split.images is not None
    assert split.images.count == 10
    assert split.captions_per_image == Range(2, 2.0, 2)
    assert split.label_columns == {"labels": 2}
    assert split.mismatch_rate == pairs.mismatch_rate
    assert "mismatched pairs" in describe(pairs).render()
    assert json.dumps(describe(pairs).to_dict(), allow_nan=False)


def test_embeddings_of_which_none_can_be_used(tmp_path: Path) -> None:
    for name, value in (("images", np.nan), ("texts", 1.0)):
        np.save(tmp_path / f"{name}.npy", np.full((4, 3), value, dtype=np.float32))
    described = describe(tmp_path)
    assert described.splits[0].captions_per_image is None and described.splits[0].problem_count == 4
    assert "captions an image   no pair can be used" in described.render()
    assert "regions" not in described.render()  # these vectors have none
