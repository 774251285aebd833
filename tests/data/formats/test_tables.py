import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.formats.made_pictures import bomb, noise, picture_bytes, write_pictures
from truepair.data.formats.tables.drafts import LONGEST_CAPTION, NO_LABEL
from truepair.data.formats.tables.picture_folder import BESIDE
from truepair.data.formats.tables.tables import TableCollection
from truepair.data.open import open as open_source
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError

Row = dict[str, Any]


def open_table(source: str | Path, **options: Any) -> TableCollection:
    collection = open_source(source, progress=False, **options)
    assert isinstance(collection, TableCollection)
    return collection


def write_csv(folder: Path, rows: list[Row], *, suffix: str = ".csv", delimiter: str = ",") -> Path:
    path = folder / f"table{suffix}"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(folder: Path, rows: list[Row | str]) -> Path:
    path = folder / "table.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def write_karpathy(folder: Path, rows: list[Row]) -> Path:
    images = [
        {"filename": Path(row["image"]).name, "filepath": str(Path(row["image"]).parent), "split": row["split"],
         "sentences": [{"raw": row["caption"], "tokens": row["caption"].split()}]}
        for row in rows
    ]  # fmt: skip
    path = folder / "dataset_made.json"
    path.write_text(json.dumps({"images": images, "dataset": "made"}))
    return path


def write_list(folder: Path, rows: list[Row]) -> Path:
    (folder / "table.json").write_text(json.dumps(rows))
    return folder / "table.json"


def write_tasks(folder: Path, rows: list[Row]) -> Path:
    """As Label Studio exports what it serves from this machine."""
    data = [{**row, "image": f"/data/local-files/?d={quote(row['image'])}"} for row in rows]
    path = folder / "tasks.json"
    path.write_text(json.dumps([{"id": k, "data": row, "annotations": []} for k, row in enumerate(data)]))
    return path


def write_parquet(folder: Path, rows: list[Row]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "table.parquet", row_group_size=3)
    return folder / "table.parquet"


FORMATS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "csv": write_csv,
    "semicolon": lambda folder, rows: write_csv(folder, rows, delimiter=";"),
    "tsv": lambda folder, rows: write_csv(folder, rows, suffix=".tsv", delimiter="\t"),
    "jsonl": lambda folder, rows: write_jsonl(folder, [*rows]),
    "json": write_list,
    "tasks": write_tasks,
    "karpathy": write_karpathy,
    "parquet": write_parquet,
}


def reasons(collection: TableCollection) -> list[tuple[int, str, bool]]:
    return [(problem.row, problem.reason, problem.used) for problem in collection.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pictures(tmp_path / "made" / "img", 8)
    return tmp_path / "made"


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same(folder: Path, form: str) -> None:
    rows: list[Row] = [
        {"image": f"img/p{k}.png", "caption": f'  a "cat";\n with, {k} tails', "split": "train" if k < 5 else "dev"}
        for k in range(8)
    ]
    table = FORMATS[form](folder, rows)
    collection = open_table(folder)
    assert collection.problems == []
    assert collection.reader.path == table and collection.name == "made"
    assert collection.reader.format == {"semicolon": "csv", "tasks": "json"}.get(form, form)
    assert collection.captions(0, 8) == [f'a "cat"; with, {k} tails' for k in range(8)]
    assert collection.ids(0, 8) == collection.image_names(0, 8) == [f"img/p{k}.png" for k in range(8)]
    assert collection.pairs.source_rows.tolist() == list(range(8)) and set(collection.caption_of_pair.tolist()) == {0}
    assert collection.place(7) == (table.name, 7)
    for k in range(8):
        assert np.array_equal(collection.picture(k), noise(k))
        assert np.array_equal(collection.pairs.images.features[k], grid_descriptor(noise(k)).astype(np.float16))
    some = open_table(table, split="val")
    assert some.pairs.source_rows.tolist() == [5, 6, 7] and some.name == "made/val"
    with pytest.raises(InputError, match="no split 'none'; its splits are dev, train"):
        open_table(folder, split="none")


def test_several_captions_of_a_row(folder: Path) -> None:
    write_jsonl(folder, [{"image": "img/p0.png", "captions": ["a", "b", "c"]}, {"image": "img/p1.png", "captions": []}])
    collection = open_table(folder)
    assert collection.captions(0, 9) == ["a", "b", "c"]
    assert collection.ids(0, 9) == ["img/p0.png#0", "img/p0.png#1", "img/p0.png#2"]
    assert collection.caption_of_pair.tolist() == [0, 1, 2] and collection.pairs.source_rows.tolist() == [0, 0, 0]
    assert collection.pairs.image_index.tolist() == [0, 0, 0] and len(collection.pairs.images) == 1
    assert reasons(collection) == [(1, "empty-caption", False)]
    assert open_table(folder, caption="first").captions(0, 9) == ["a"]
    two = open_table(folder, caption="first:2")
    assert two.captions(0, 9) == ["a", "b"] and two.pairs.pair_ids == collection.pairs.pair_ids[:2]
    for wrong in ("first:0", "first:", "first:two"):
        with pytest.raises(InputError, match=f"no column '{wrong}'"):
            open_table(folder, caption=wrong)


def test_captions_in_numbered_columns_of_which_some_are_empty(folder: Path) -> None:
    names = ["caption_10", "caption_2", "caption_1"]
    rows = [["img/p0.png", "k", "j", "i"], ["img/p1.png", "", "m", ""], ["img/p2.png", "", "", ""]]
    write_csv(folder, [dict(zip(["file", *names], row, strict=True)) for row in rows])
    collection = open_table(folder)
    assert collection.columns.image == "file"
    assert collection.columns.captions == ("caption_1", "caption_2", "caption_10")
    assert collection.captions(0, 9) == ["i", "j", "k", "m"]
    assert collection.caption_of_pair.tolist() == [0, 1, 2, 1]
    assert reasons(collection) == [(2, "empty-caption", False)]


def test_a_picture_of_several_rows_is_described_once_and_ids_stay_unique(folder: Path) -> None:
    rows: list[Row | str] = [{"image": f"img/p{k % 2}.png", "caption": f"c{k}"} for k in range(4)]
    write_jsonl(folder, [*rows, {"image": "img/p0.png#2", "caption": "no such file"}])
    collection = open_table(folder)
    assert len(collection.pairs.images) == 2
    assert collection.pairs.image_index.tolist() == [0, 1, 0, 1]
    assert collection.ids(0, 9) == ["img/p0.png", "img/p1.png", "img/p0.png#2", "img/p1.png#3"]
    assert collection.picture(3) is not None and np.array_equal(collection.picture(3), noise(1))


def test_columns_by_name(folder: Path) -> None:
    table = write_csv(folder, [{"Image": "img/p0.png", "Title": "a", "where": "img/p1.png", "said": "b", "also": "c"}])
    assert open_table(table).captions(0, 9) == ["a"]
    named = open_table(table, image="where", caption="said, also")
    assert named.captions(0, 9) == ["b", "c"] and named.columns.captions == ("said", "also")
    assert np.array_equal(named.picture(0), noise(1))
    with pytest.raises(InputError, match="no column 'saids' for the caption; its columns are Image, Title, where"):
        open_table(table, caption="saids")


@pytest.mark.parametrize("folder", BESIDE)
def test_pictures_in_a_folder_beside_the_table(tmp_path: Path, folder: str) -> None:
    write_pictures(tmp_path / folder, 2)
    write_csv(tmp_path, [{"image": f"p{k}.png", "caption": f"caption {k}"} for k in range(3)])
    collection = open_table(tmp_path)
    assert collection.image_names(0, 2) == ["p0.png", "p1.png"]
    (problem,) = collection.problems
    assert "p2.png" in problem.detail and "images or Images or pictures" in problem.detail


def test_pictures_in_images_and_a_table_elsewhere(tmp_path: Path) -> None:
    write_pictures(tmp_path / "data" / "images", 2)
    (tmp_path / "tables").mkdir()
    table = write_csv(tmp_path / "tables", [{"image": f"p{k}.png", "caption": "a"} for k in range(2)])
    collection = open_table(tmp_path / "data", table=str(table))
    assert len(collection) == 2 and collection.problems == []


def test_labels(folder: Path) -> None:
    rows: list[Row | str] = [
        {"image": f"img/p{k}.png", "caption": "a", "kind": kind} for k, kind in enumerate([10, 9, None, 10, ""])
    ]
    write_jsonl(folder, rows)
    pairs = open_table(folder, label="kind").pairs
    assert pairs.class_names == ("9", "10", NO_LABEL)
    assert pairs.labels is not None and pairs.labels.tolist() == [1, 0, 2, 1, 2]
    assert open_table(folder).pairs.labels is None
    write_jsonl(folder, [{"image": "img/p0.png", "caption": "a", "kind": NO_LABEL}, rows[1], rows[2]])
    with pytest.raises(InputError, match=r"a class is called '\(none\)'"):
        open_table(folder, label="kind")
    with pytest.raises(InputError, match="no column 'kinds'"):
        open_table(folder, label="kinds")


def test_bad_pictures_are_listed_and_the_others_audited(folder: Path, tmp_path: Path) -> None:
    pictures = folder / "img"
    (tmp_path / "outside.png").write_bytes(picture_bytes(noise(9)))
    (pictures / "p1.png").write_bytes((pictures / "p1.png").read_bytes()[:300])
    (pictures / "p2.png").write_bytes(bomb(20_000, 20_000))
    (pictures / "p3.jpg").write_text("no picture")
    (pictures / "p4.png").write_bytes(picture_bytes(noise(4, 8, 8)))
    (pictures / "p5.jpg").write_bytes(picture_bytes(noise(5)))  # a PNG
    os.mkfifo(pictures / "pipe.png")
    names = ["img/p0.png", "img/p1.png", "img/p2.png", "img/p3.jpg", "img/p4.png", "img/p5.jpg", "img/none.png"]
    names += [
        "../outside.png", str(tmp_path / "outside.png"), "img\\..\\..\\outside.png", "C:\\outside.png", "C:outside.png",
        "img", "img/pipe.png", "https://example.org/p0.png", "a\x00b.png", "x" * 5000, "\ud800.png", "img/p7.png",
    ]  # fmt: skip
    rows: list[Row | str] = [{"image": name, "captions": ["a", "b"]} for name in names]
    write_jsonl(folder, rows)
    collection = open_table(folder)
    assert collection.ids(0, 9) == [f"{names[k]}#{n}" for k in (0, 5, 18) for n in (0, 1)]
    assert [reason for _, reason, _ in reasons(collection)] == [
        "broken-picture", "huge-picture", "not-a-picture", "tiny-picture", "missing-picture", "outside-folder",
        "outside-folder", "outside-folder", "outside-folder", "outside-folder", "not-a-picture", "not-a-picture",
        "missing-picture", "missing-picture", "missing-picture", "missing-picture",
    ]  # fmt: skip
    assert [row for row, _, _ in reasons(collection)] == [*range(1, 5), *range(6, 18)]
    assert np.array_equal(collection.picture(3), noise(5)) and np.array_equal(collection.picture(4), noise(7))
    assert collection.pairs.image_index.tolist() == [0, 0, 1, 1, 2, 2] and len(collection.pairs.images) == 3
    for problem in collection.problems:
        assert problem.file == "table.jsonl" and not problem.used
        f"{problem.entry} {problem.detail}".encode()
        assert str(problem).startswith(f"table.jsonl, row {problem.row}: {problem.entry}: ")


def test_a_picture_that_vanishes_meanwhile(folder: Path) -> None:
    write_jsonl(folder, [{"image": "img/p0.png", "caption": "a"}])
    collection = open_table(folder)
    (folder / "img" / "p0.png").unlink()
    assert collection.picture(0) is None


def test_a_picture_that_changes_is_described_anew(folder: Path) -> None:
    write_jsonl(folder, [{"image": "img/p0.png", "caption": "a"}])
    open_table(folder)
    (folder / "img" / "p0.png").write_bytes(picture_bytes(noise(50, 30, 30)))
    features = open_table(folder).pairs.images.features
    assert np.array_equal(features[0], grid_descriptor(noise(50, 30, 30)).astype(np.float16))


def test_bad_captions(folder: Path) -> None:
    captions: list[Any] = ["a", "", "  ", None, 7, "b " * 50_000, {"raw": "a"}]
    write_jsonl(folder, [{"image": f"img/p{k}.png", "caption": caption} for k, caption in enumerate(captions)])
    collection = open_table(folder)
    assert reasons(collection) == [
        (1, "empty-caption", False), (2, "empty-caption", False), (3, "caption-not-text", False),
        (4, "caption-not-text", False), (5, "long-caption", True), (6, "caption-not-text", False),
    ]  # fmt: skip
    assert len(collection) == len(collection.pairs.images) == 2
    assert collection.captions(1, 2)[0].startswith("b b") and len(collection.captions(1, 2)[0]) == LONGEST_CAPTION - 1
    (folder / "img" / "p5.png").write_bytes(b"")
    assert (5, "long-caption", True) not in reasons(open_table(folder))  # its pair is not audited any more


def test_rows_without_a_path(folder: Path) -> None:
    write_jsonl(folder, [{"image": "img/p0.png", "caption": "a"}, {"caption": "b"}, {"image": 3, "caption": "c"}])
    assert reasons(open_table(folder)) == [(1, "no-picture-path", False), (2, "no-picture-path", False)]


def test_nothing_usable(folder: Path) -> None:
    write_jsonl(folder, [{"image": f"none{k}.png", "caption": "a"} for k in range(5)])
    with pytest.raises(InputError, match="no pair that can be used.*first of 5 problems.*none0.png: there is no such"):
        open_table(folder)
    (folder / "img" / "p0.png").write_bytes(b"")
    write_jsonl(folder, [{"image": "img/p0.png", "caption": "a"}])
    with pytest.raises(InputError, match="first of 1 problems.*img/p0.png"):
        open_table(folder)
