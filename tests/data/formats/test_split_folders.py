"""Hugging Face's imagefolder, with splits and without."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truepair
from tests.data.formats.made_pictures import noise, write_pictures
from truepair.errors import InputError


def image_folder(folder: Path, ending: str, first: int = 0, count: int = 3) -> None:
    write_pictures(folder, first + count)
    rows = [{"file_name": f"p{k}.png", "text": f"text, {k}"} for k in range(first, first + count)]
    path = folder / f"metadata.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_metadata_of_every_kind(tmp_path: Path, ending: str) -> None:
    image_folder(tmp_path / "in", ending)
    found = truepair.open(tmp_path / "in", progress=False)
    assert found.ids(0, 9) == ["p0.png", "p1.png", "p2.png"] and found.captions(2, 3) == ["text, 2"]
    assert found.problems == []


def test_splits_are_folders(tmp_path: Path) -> None:
    image_folder(tmp_path / "in" / "train", "jsonl", 0, 4)
    image_folder(tmp_path / "in" / "validation", "csv", 4, 3)
    assert truepair.open(tmp_path / "in", progress=False).ids(0, 9) == [f"p{k}.png" for k in range(4)]
    dev = truepair.open(tmp_path / "in", "dev", progress=False)
    assert dev.ids(0, 9) == ["p4.png", "p5.png", "p6.png"] and dev.name == dev.load().name == "in/validation"
    assert np.array_equal(dev.picture(1), noise(5))
    with pytest.raises(InputError, match="has the splits train, validation; name one"):
        truepair.open(tmp_path / "in", "test", progress=False)


def test_what_goes_over_several_tables_is_refused(tmp_path: Path) -> None:
    image_folder(tmp_path / "in" / "train", "jsonl")
    with pytest.raises(InputError, match="no option label"):
        truepair.open(tmp_path / "in", label="text", progress=False)
    image_folder(tmp_path / "in" / "train", "csv")
    with pytest.raises(InputError, match=r"holds metadata\.csv and metadata\.jsonl; leave one"):
        truepair.open(tmp_path / "in", progress=False)
