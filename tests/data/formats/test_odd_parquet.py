"""Parquet tables with columns of one name, and of types that Python cannot hold: read, or refused in a sentence."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.formats.made_pictures import write_pictures
from truepair.data.describe import describe
from truepair.data.formats.tables.parquet_table import ParquetTable
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.open import load
from truepair.data.open import open as open_source
from truepair.errors import InputError

FAR = {
    "timestamp": pa.array([2**62, 0], pa.int64()).cast(pa.timestamp("us")),
    "date": pa.array([2**30, 0], pa.int32()).cast(pa.date32()),
    "duration": pa.array([2**60, 0], pa.int64()).cast(pa.duration("s")),
}


def table(folder: Path, *more: tuple[str, Any]) -> Path:
    write_pictures(folder, 2)
    columns = [("image", ["p0.png", "p1.png"]), ("caption", ["one", "two"]), *more]
    names, values = zip(*columns, strict=True)
    pq.write_table(pa.table([pa.array(column) for column in values], names=list(names)), folder / "t.parquet")
    return folder


def test_a_doubled_column_that_nobody_needs_is_left_out(tmp_path: Path) -> None:
    folder = table(tmp_path, ("n", [1, 2]), ("n", [3, 4]), ("kind", ["a", "b"]))
    assert len(load(folder, progress=False)) == 2
    assert describe(folder, progress=False).splits[0].label_columns == {"kind": 2}


@pytest.mark.parametrize("name", ["image", "caption", "split", "kind"])
def test_a_doubled_column_that_is_needed_is_refused(tmp_path: Path, name: str) -> None:
    more = [(name, ["p0.png", "p1.png"])] * (1 if name in ("image", "caption") else 2)
    folder = table(tmp_path, *more)
    with pytest.raises(InputError, match=rf"t\.parquet: the table has the column '{name}' twice; rename one of them"):
        load(folder, progress=False, label="kind" if name == "kind" else None)


@pytest.mark.parametrize("kind", FAR)
def test_times_that_python_cannot_hold(tmp_path: Path, kind: str) -> None:
    folder = table(tmp_path, ("when", FAR[kind]), ("kind", ["a", "b"]))
    assert len(load(folder, progress=False)) == 2
    assert describe(folder, progress=False).splits[0].label_columns == {"kind": 2}
    with pytest.raises(InputError, match=r"t\.parquet.*rows 0 to 1 cannot be read"):
        open_source(folder, label="when", progress=False)


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_lists_of_text_that_is_not_utf8(tmp_path: Path, kind: Any) -> None:
    plain = pa.array([[b"caf\xe9", None], None, [b"ok"]], kind(pa.binary()))
    text = pa.StringArray.from_buffers(3, *plain.values.buffers()[1:], plain.values.buffers()[0])
    listed = pa.ListArray if kind is pa.list_ else pa.LargeListArray
    captions = listed.from_arrays(plain.offsets, text, mask=plain.is_null())
    pq.write_table(pa.table({"image": ["a", "b", "c"], "captions": captions}), tmp_path / "t.parquet")
    *rows, problem = ParquetTable(tmp_path / "t.parquet").rows(["captions"])
    found = [row.fields["captions"] for row in rows if isinstance(row, TableRow)]
    assert found == [["café", None], None, ["ok"]]
    assert "1 values are not UTF-8" in str(problem)


def test_csv_of_which_two_columns_have_no_name_is_described(tmp_path: Path) -> None:
    write_pictures(tmp_path, 2)
    (tmp_path / "t.csv").write_text("image,caption,kind,,\np0.png,one,a,,\np1.png,two,b,,\n")
    assert len(load(tmp_path, progress=False)) == 2
    assert describe(tmp_path, progress=False).splits[0].label_columns == {"kind": 2}
