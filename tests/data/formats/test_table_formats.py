"""What is odd about one format alone: damaged tables in every encoding."""

import csv
import json
import random
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truepair.data.collection import Problem
from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.json_tables import JsonLinesTable, KarpathyTable
from truepair.data.formats.tables.parquet_table import ParquetTable
from truepair.data.formats.tables.table_columns import (
    Columns,
    TableReader,
    TableRow,
    caption_places,
    choose_columns,
)
from truepair.errors import InputError


def read(reader: TableReader) -> tuple[list[tuple[int, dict[str, Any]]], list[tuple[int, str]]]:
    """(row, fields) of the good rows, and (row, reason) of the problems."""
    found = list(reader.rows(reader.columns()))
    rows = [(row.row, dict(row.fields)) for row in found if isinstance(row, TableRow)]
    return rows, [(problem.row, problem.reason) for problem in found if isinstance(problem, Problem)]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def test_csv_with_another_number_of_fields(tmp_path: Path) -> None:
    text = "image,caption\na.png,one\n\nb.png,two,three\nc.png\nd.png,four,,\ne.png,five"
    rows, problems = read(CsvTable(write(tmp_path, "t.csv", text)))
    assert [(row, fields["image"]) for row, fields in rows] == [(0, "a.png"), (3, "d.png"), (4, "e.png")]
    assert problems == [(1, "wrong-field-count"), (2, "wrong-field-count")]


def test_an_open_quote_costs_one_record(tmp_path: Path) -> None:
    text = 'image,caption\na.png,one\nb.png,"two\nc.png,three\nd.png,"four,\nstill four"\ne.png,five\nf.png,"six\n'
    rows, problems = read(CsvTable(write(tmp_path, "t.csv", text + "g.png,seven\n")))
    assert [fields["image"] for _, fields in rows] == ["a.png", "c.png", "d.png", "e.png", "g.png"]
    assert rows[2][1]["caption"] == "four,\nstill four"
    assert problems == [(1, "wrong-field-count"), (5, "wrong-field-count")]
    assert [row for row, _ in rows] == [0, 2, 3, 4, 6]


def test_csv_agrees_with_python_on_good_tables(tmp_path: Path) -> None:
    draw = random.Random(0)
    rows = [["image", "caption"]] + [
        ["".join(draw.choices('ab ,;"\n', k=draw.randrange(9))) for _ in range(2)] for _ in range(300)
    ]
    rows = [row for row in rows if any(field.strip() for field in row)]
    text = StringIO()
    csv.writer(text, lineterminator=draw.choice(["\n", "\r\n"])).writerows(rows)
    found, problems = read(CsvTable(write(tmp_path, "t.csv", text.getvalue())))
    assert problems == []
    assert [list(fields.values()) for _, fields in found] == rows[1:]


def test_csv_with_a_very_long_field_leaves_pythons_limit_alone(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    rows, problems = read(CsvTable(write(tmp_path, "t.csv", f"image,caption\na.png,{'x' * 200_000}\n")))
    assert len(rows[0][1]["caption"]) == 200_000 and problems == []
    assert csv.field_size_limit() == 131_072


def test_csv_columns_twice_and_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'caption' twice"):
        read(CsvTable(write(tmp_path, "t.csv", "image,caption,caption\na,b,c\n")))
    for content in ("", "\n\n", "a.png,words\nb.png,more\n"):
        with pytest.raises(InputError, match="no column of image paths and of captions"):
            choose_columns(CsvTable(write(tmp_path, "t.csv", content)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_marked_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    text = "image,caption\na.png,café 猫\n" if name == "t.csv" else '{"image": "a.png", "caption": "café 猫"}\n'
    path = write(tmp_path, name, text.encode(encoding))
    rows, problems = read(CsvTable(path) if name == "t.csv" else JsonLinesTable(path))
    assert rows == [(0, {"image": "a.png", "caption": "café 猫"})]
    assert problems == []


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_windows_lines_among_others(tmp_path: Path, name: str) -> None:
    csv_text = [b"image,caption", "a.png,café".encode(), "b.png,café".encode("cp1252"), b"c.png,\x81"]
    jsonl = [b"", b'{"image": "a.png", "caption": "caf\xc3\xa9"}', b'{"image": "b.png", "caption": "caf\xe9"}']
    jsonl += [b'{"image": "c.png", "caption": "\x81"}']
    path = write(tmp_path, name, b"\n".join(csv_text if name == "t.csv" else jsonl))
    reader: TableReader = CsvTable(path) if name == "t.csv" else JsonLinesTable(path)
    rows, problems = read(reader)
    assert [fields["caption"] for _, fields in rows] == ["café", "café", "\x81"]
    assert problems == [(-1, "encoding")]
    (problem,) = (problem for problem in reader.rows(reader.columns()) if isinstance(problem, Problem))
    assert problem.used and "2 lines (3, 4)" in problem.detail


def test_utf16_cut_in_the_middle(tmp_path: Path) -> None:
    data = '{"caption": "a"}\n{"caption": "b"}\n'.encode("utf-16")
    rows, problems = read(JsonLinesTable(write(tmp_path, "t.jsonl", data[:-1])))
    assert rows[0] == (0, {"caption": "a"})
    assert (-1, "encoding") in problems


def test_lines_that_are_no_json(tmp_path: Path) -> None:
    lines = ['{"caption": "a"}', "{", "", "[1]", "nonsense", "[" * 100_000, '{"caption": "\u2028 b"}\r']
    rows, problems = read(JsonLinesTable(write(tmp_path, "t.jsonl", "\n".join(lines))))
    assert rows == [(0, {"caption": "a"}), (6, {"caption": "\u2028 b"})]
    assert problems == [(1, "not-json"), (3, "not-json"), (4, "not-json"), (5, "not-json")]


def test_karpathy(tmp_path: Path) -> None:
    images: list[Any] = [
        {"filename": "a.jpg", "sentences": [{"raw": "one"}, {"tokens": []}, "two"], "cocoid": 5},
        "nothing",
        {"filename": "b.jpg", "filepath": "val2014", "sentences": None},
        {"filepath": "val2014"},
    ]
    reader = KarpathyTable(write(tmp_path, "dataset.json", json.dumps({"images": images})))
    rows, problems = read(reader)
    assert [(row, fields["filename"], fields["sentences"]) for row, fields in rows] == [
        (0, "a.jpg", ["one", None, "two"]), (2, "val2014/b.jpg", None), (3, None, None),
    ]  # fmt: skip
    assert problems == [(1, "not-an-object")]
    assert choose_columns(reader) == Columns("filename", ("sentences",))
    for content in ('{"annotations": []}', "{", "[" * 100_000):
        with pytest.raises(InputError, match="Karpathy"):
            KarpathyTable(write(tmp_path, "dataset.json", content))


def test_parquet_with_lists_categories_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    odd = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0\5\0\0\0"), pa.py_buffer(b"caf\xe9b")]
    )
    columns = {"image": pa.array(["a", "b"]).dictionary_encode(), "captions": pa.array([["x", None], []]), "title": odd}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    rows, problems = read(ParquetTable(tmp_path / "t.parquet"))
    assert rows == [
        (0, {"image": "a", "captions": ["x", None], "title": "café"}),
        (1, {"image": "b", "captions": [], "title": "b"}),
    ]
    assert problems == [(-1, "encoding")]


def test_a_damaged_row_group_costs_its_own_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij ", k=200)) for _ in range(30)]
    pq.write_table(
        pa.table({"image": words, "caption": words}), path, row_group_size=10, use_dictionary=False, compression="zstd"
    )
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    rows, problems = read(ParquetTable(write(tmp_path, "t.parquet", bytes(data))))
    assert [row for row, _ in rows] == [*range(10), *range(20, 30)]
    assert [fields["caption"] for _, fields in rows] == words[:10] + words[20:]
    assert problems == [(10, "broken-rows")]
    with pytest.raises(InputError, match="cannot be read as parquet"):
        ParquetTable(write(tmp_path, "t.parquet", bytes(data[:-9])))


def test_parquet_without_the_needed_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": ["a"], "words": ["b"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no column of captions .* its columns are image, words"):
        choose_columns(ParquetTable(tmp_path / "t.parquet"))


def test_caption_places() -> None:
    fields = {"a": ["x", "y"], "b": "z", "c": None, "d": []}
    expected = [("a", 0, "x"), ("a", 1, "y"), ("b", None, "z"), ("c", None, None), ("e", None, None)]
    assert caption_places(fields, ("a", "b", "c", "d", "e")) == expected
