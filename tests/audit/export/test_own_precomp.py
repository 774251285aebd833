from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from truepair.audit.export import export
from truepair.audit.result import AuditResult
from truepair.data import selection
from truepair.data.collection import PairsCollection
from truepair.data.formats.precomp.precomp import PrecompCollection
from truepair.data.formats.precomp.write import _captions_per_image
from truepair.data.noise import inject_noise
from truepair.data.open import load
from truepair.data.open import open as open_source
from truepair.data.pairs import Pairs
from truepair.errors import InputError

Audited = Callable[..., AuditResult]


def make(folder: Path, *, images: int = 6, per_image: int = 2, tsv: bool = False, ids: str = "image") -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for split, count in {"train": images, "dev": 3}.items():
        captions = [f"{split} caption {c} é" for c in range(count * per_image)]
        np.save(folder / f"{split}_ims.npy", rng.normal(size=(count, 3, 4)).astype(np.float16))
        if tsv:
            lines = [f"t{c}\t{caption}" for c, caption in enumerate(captions)]
            (folder / f"{split}_caps.tsv").write_text("\n".join(lines), encoding="utf-8")
        else:
            (folder / f"{split}_caps.txt").write_text("\n".join(captions), encoding="utf-8")
        if ids != "none":
            names = range(count if ids == "image" else count * per_image)
            (folder / f"{split}_ids.txt").write_text("".join(f"{ids} {name}\n" for name in names))
        rows = [f"{image}\t{'ab'[image % 2]}\n" for image in range(count)]
        (folder / f"{split}_meta.tsv").write_text("".join(["number\tkind\n", *rows]))
    (folder / "train_lengths.json").write_text("[]")
    (folder / "train_extra_ims.npy").write_bytes(b"")
    (folder / "train_extra_caps.txt").write_bytes(b"")
    (folder / "README.md").write_text("mine")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same_pairs(found: Pairs, expected: Pairs) -> None:
    assert len(found) == len(expected)
    assert [found.texts.captions[t] for t in found.text_index] == [
        expected.texts.captions[t] for t in expected.text_index
    ]
    one, other = (pairs.images.features[pairs.image_index] for pairs in (found, expected))
    assert one.dtype == other.dtype
    assert np.array_equal(one, other)
    labels = [
        None if pairs.labels is None else [pairs.class_names[k] for k in pairs.labels] for pairs in (found, expected)
    ]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("tsv", [False, True])
@pytest.mark.parametrize("ids", ["image", "caption", "none"])
@pytest.mark.parametrize(
    ("flagged", "images"),
    [([], 6), ([2, 3], 5), ([0], 11), ([0, 2, 5, 7, 8, 11], 6), (list(range(11)), 1)],
)
def test_round_trip(
    tmp_path: Path, audited: Audited, noise: float, tsv: bool, ids: str, flagged: Sequence[int], images: int
) -> None:
    folder = make(tmp_path / "in", tsv=tsv, ids=ids)
    before = contents(folder)
    pairs = load(folder, "train", label="kind")
    if noise:
        pairs = inject_noise(pairs, noise, seed=1)
        assert pairs.mismatched is not None and pairs.mismatched.any()
    result = audited(PrecompCollection(pairs, folder, "train"), flagged, noise=noise)
    (own,) = export(result, tmp_path / "out", ["own"])
    kept = np.setdiff1d(np.arange(12), flagged)
    found = load(own, "train", label="kind")
    same_pairs(found, pairs.take(kept))
    assert noise or len(found.images) == images
    weights = np.load(own / "weights.npy")
    assert weights.dtype == np.float32
    assert np.array_equal(weights, result.verdict.p_match[kept])
    if tsv:
        assert found.texts.ids == tuple(f"t{row}" for row in pairs.text_index[kept])
    if ids == "image" and not noise:
        assert found.images.ids[0] == f"image {kept[0] // 2}"
    if ids == "caption" and not tsv:
        assert found.texts.ids == tuple(f"caption {row}" for row in pairs.text_index[kept])
    same_pairs(load(own, "dev", label="kind"), load(folder, "dev", label="kind"))
    assert contents(folder) == before
    others = {"dev_meta.tsv", "dev_ims.npy", "README.md", "train_extra_ims.npy", "train_extra_caps.txt"}
    assert others <= set(contents(own))
    assert all(contents(own)[name] == before[name] for name in others)
    assert "train_lengths.json" not in contents(own)


def test_labels_of_captions(tmp_path: Path, audited: Audited) -> None:
    folder = make(tmp_path / "in")
    (folder / "train_meta.tsv").write_text("".join(["kind\n", *(f"k{row % 5}\n" for row in range(12))]))
    pairs = inject_noise(load(folder, "train", label="kind"), 0.5, seed=1)
    (own,) = export(audited(PrecompCollection(pairs, folder, "train"), [0, 5]), tmp_path / "out", ["own"])
    same_pairs(load(own, "train", label="kind"), pairs.take(np.delete(np.arange(12), [0, 5])))


def test_only_arrays_are_linked(tmp_path: Path, audited: Audited) -> None:
    folder = make(tmp_path / "in")
    result = audited(open_source(folder), [1])
    (own,) = export(result, tmp_path / "out", ["own"])
    assert (own / "dev_ims.npy").stat().st_ino == (folder / "dev_ims.npy").stat().st_ino
    assert (own / "dev_caps.txt").stat().st_ino != (folder / "dev_caps.txt").stat().st_ino
    assert not (own / "train_ims.npy").stat().st_nlink > 1


def test_an_export_can_be_exported(tmp_path: Path, audited: Audited) -> None:
    folder = make(tmp_path / "in", per_image=1)
    (first,) = export(audited(open_source(folder, "train"), [1]), tmp_path / "1", ["own"])
    (again,) = export(audited(open_source(first, "val"), [0]), tmp_path / "2", ["own"])
    same_pairs(load(again, "dev"), load(folder, "dev").take(np.array([1, 2])))
    assert len(np.load(again / "weights.npy")) == 2


def test_pairs_that_are_not_those_of_the_files(tmp_path: Path, audited: Audited) -> None:
    folder = make(tmp_path / "in")
    pairs = load(folder, "train").first_images(4)
    with pytest.raises(InputError, match="6 images and 12 captions, 4 and 8 were read before"):
        export(audited(PrecompCollection(pairs, folder, "train"), []), tmp_path / "out", ["own"])
    fewer = load(folder, "train").take(np.arange(5))  # the first pairs only: both sides are still whole
    (own,) = export(audited(PrecompCollection(fewer, folder, "train"), [4]), tmp_path / "out", ["own"])
    same_pairs(load(own, "train"), fewer.take(np.arange(4)))
    with pytest.raises(InputError, match="no format of its own"):
        export(audited(PairsCollection(pairs), []), tmp_path / "other", ["own"])


@pytest.mark.parametrize("step", [1, 24, 60, 1000])
def test_features_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(selection, "_CHUNK_BYTES", step)
    features, rows = np.arange(60, dtype=">f4").reshape(10, 3, 2), np.array([3, 3, 9, 0, 1])
    pieces = list(selection.taken(features, rows))
    assert len(pieces) == {1: 5, 24: 5, 60: 3, 1000: 1}[step]
    selection.write_npy(tmp_path / "a.npy", (5, 3, 2), np.float32, pieces)
    assert np.array_equal(np.load(tmp_path / "a.npy"), features[rows])
    with pytest.raises(ValueError, match="5 rows written, 6 announced"):
        selection.write_npy(tmp_path / "a.npy", (6, 3, 2), np.float32, pieces)


@pytest.mark.parametrize("seed", range(20))
def test_captions_per_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = np.repeat(rng.integers(4, size=6), rng.choice([2, 4, 6], size=6) if seed % 2 else rng.integers(1, 4, 6))
    found = _captions_per_image(images)
    divides = [k for k in range(1, len(images) + 1) if len(images) % k == 0]
    fits = [k for k in divides if all(len(set(images[c : c + k])) == 1 for c in range(0, len(images), k))]
    assert found == max(fits)
