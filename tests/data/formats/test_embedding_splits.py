"""A split column in the metadata of embeddings."""

from pathlib import Path

import numpy as np
import pytest

import truepair
from tests.data.formats.made_embeddings import clip_folder, expected, write_parquet
from truepair.data.formats.embeddings.files import open_embeddings
from truepair.data.formats.embeddings.split import SplitOfEmbeddings
from truepair.data.open import splits_of
from truepair.data.selection import Selection
from truepair.errors import InputError

SPLITS = (["train", "val", "train", "test", "train"], [""], ["test", "train", "val", "train", "train", "test", "train"])


def split_folder(folder: Path) -> Path:
    clip_folder(folder)
    for number, names in enumerate(SPLITS):
        captions = [f"caption {number} {row}" for row in range(len(names))]
        write_parquet(folder / f"metadata/metadata_{number}.parquet", {"caption": captions, "split": names})
    return folder


@pytest.mark.parametrize("span", [1, 3, 65_536])
def test_a_split_column_of_the_metadata(tmp_path: Path, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = split_folder(tmp_path / "clip")
    monkeypatch.setattr("truepair.data.formats.embeddings.split._SPAN", span)
    assert splits_of(folder) == ("test", "train", "val")
    names = [name for shard in SPLITS for name in shard]
    whole = open_embeddings(folder)
    for split, stored in (("train", "train"), ("dev", "val"), ("test", "test")):
        rows = [row for row, name in enumerate(names) if name == stored]
        found = truepair.open(folder, split)
        assert isinstance(found, SplitOfEmbeddings)
        assert len(found) == len(rows) and found.source_rows(np.arange(len(rows))).tolist() == rows
        for start, stop in ((0, len(rows)), (1, len(rows) - 1), (0, 99), (2, 2)):
            here = rows[start:stop]
            for side, part in zip(found.read(start, stop), (1, 2), strict=True):
                np.testing.assert_array_equal(side, expected(part)[here])
            assert found.captions(start, stop) == [whole.captions(row, row + 1)[0] for row in here]
            assert found.ids(start, stop) == [whole.ids(row, row + 1)[0] for row in here]
            assert found.image_names(start, stop) == [whole.image_names(row, row + 1)[0] for row in here]
        assert found.place(1) == whole.place(rows[1])
        assert found.fingerprint() != whole.fingerprint()
        assert [problem.reason for problem in found.problems] == ["no-split"]
        with pytest.warns(match="1 rows have no split"):
            assert len(truepair.load(folder, split)) == len(rows)
    assert len(truepair.open(folder)) == 13


def test_what_is_kept_of_a_split_is_written_with_its_metadata(tmp_path: Path) -> None:
    found = truepair.open(split_folder(tmp_path / "clip"), "test")
    kept = np.array([True, False, True])
    found.write(Selection(kept, ~kept, kept.astype(np.float32)), tmp_path / "out")
    again = truepair.open(tmp_path / "out", "test")
    assert again.captions(0, 9) == [caption for caption, good in zip(found.captions(0, 9), kept, strict=True) if good]
    np.testing.assert_array_equal(again.read(0, 2)[1], found.read(0, 3)[1][kept])
    others = truepair.open(tmp_path / "clip", "train")
    assert truepair.open(tmp_path / "out", "train").captions(0, 99) == others.captions(0, 99)
    weights = np.concatenate([np.load(path) for path in sorted((tmp_path / "out").rglob("weights_*.npy"))])
    assert len(weights) == len(truepair.open(tmp_path / "out")) == 12 and set(weights) == {1}


def test_a_split_that_is_not_there_and_shares_beside_a_column_are_refused(tmp_path: Path) -> None:
    folder = split_folder(tmp_path / "clip")
    with pytest.raises(InputError, match=r"clip has no split 'extra'; its splits are test, train, val\. Choose"):
        truepair.open(folder, "extra")
    with pytest.raises(InputError, match="has splits of its own"):
        truepair.open(folder, "dev", dev_share=0.2)
