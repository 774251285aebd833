import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from truepair.audit.export import export
from truepair.audit.result import AuditResult
from truepair.data import selection
from truepair.data.collection import PairsCollection
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError, TruepairError

Audited = Callable[..., AuditResult]
CAPTIONS = ('a "quoted", caption', "two\nlines", "rød ⚓", "=1+1", "", "tab\there", "last \udcff")
WEIGHTS = [0.01, 0, 0.03, 0.04, 0.05, 0, 0.07]  # row 1 is flagged, row 5 could not be scored
KEPT = [0, 2, 3, 4, 6]


def pairs_collection(ids: list[str] | None = None) -> PairsCollection:
    count = len(CAPTIONS)
    index = np.arange(count)
    images = Images(np.zeros((count, 3), dtype=np.float32), tuple(f"picture {k}.png" for k in range(count)))
    texts = Texts(CAPTIONS, tuple(map(str, range(count))))
    return PairsCollection(Pairs(images, texts, index, index, pair_ids=ids))


@pytest.fixture(params=[2, 1000])
def result(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, audited: Audited) -> AuditResult:
    monkeypatch.setattr(selection, "_ROWS_AT_ONCE", request.param)
    ids = [f"pair {k}" for k in range(len(CAPTIONS))]
    return audited(pairs_collection(ids), [1], rows=[0, 1, 2, 3, 4, 6])


def test_ids(result: AuditResult, tmp_path: Path) -> None:
    written = export(result, tmp_path / "a" / "out", ["ids"])
    assert written == [tmp_path / "a/out/flagged_ids.txt", tmp_path / "a/out/kept_ids.txt"]
    assert written[0].read_bytes() == b"pair 1\n"
    assert written[1].read_text().splitlines() == [f"pair {row}" for row in KEPT]


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_tables(result: AuditResult, tmp_path: Path, name: str) -> None:
    kept, weights = export(result, tmp_path / "out", [name])
    assert (kept.name, weights.name) == (f"kept.{name}", f"weights.{name}")
    shown = [*CAPTIONS[:6], "last \\udcff"]
    assert read(kept) == [
        {"pair_id": f"pair {k}", "image": f"picture {k}.png", "caption": shown[k], "p_match": w, "weight": w}
        for k, w in enumerate(WEIGHTS)
        if k in KEPT
    ]
    assert read(weights) == [{"pair_id": f"pair {k}", "weight": w} for k, w in enumerate(WEIGHTS)]


def read(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        assert {str(kind) for kind in table.schema.types} <= {"string", "float"}
        rows = table.to_pylist()
    else:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    numbers = ("p_match", "weight")
    return [{k: round(float(v), 6) if k in numbers else v for k, v in row.items()} for row in rows]


def test_all_lists_at_once(result: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    written = export(result, str(tmp_path / "out"), ["jsonl", "ids", "csv", "csv", "parquet"])
    assert len(written) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_kept_is_a_list_all_the_same(tmp_path: Path, audited: Audited) -> None:
    result = audited(pairs_collection(), range(7))
    written = {path.name: path for path in export(result, tmp_path / "out", ["ids", "csv", "jsonl", "parquet"])}
    assert written["kept_ids.txt"].read_bytes() == written["kept.jsonl"].read_bytes() == b""
    assert read(written["kept.csv"]) == read(written["kept.parquet"]) == []
    assert pq.read_table(written["kept.parquet"]).column_names == ["pair_id", "image", "caption", "p_match", "weight"]
    with pytest.raises(InputError, match="no pair is kept"):
        export(result, tmp_path / "other", ["own"])


@pytest.mark.parametrize("odd", ["a\nb", "a\rb"])
def test_an_id_with_a_line_break(tmp_path: Path, audited: Audited, odd: str) -> None:
    result = audited(pairs_collection(["0", "1", odd, "3", "4", "5", "6"]), [])
    with pytest.raises(InputError, match="pair 2: the id .* has a line break"):
        export(result, tmp_path / "out", ["csv", "ids"])
    assert list(tmp_path.iterdir()) == []
    assert len(export(result, tmp_path / "out", ["csv", "jsonl", "parquet"])) == 6


def test_where_it_refuses_to_write(result: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("full", "file", "link"):
        with pytest.raises(InputError, match=f"{name} exists already"):
            export(result, tmp_path / name, ["ids"])
    with pytest.raises(TruepairError, match="could not be written"):
        export(result, tmp_path / "file" / "out", ["ids"])
    with pytest.raises(InputError, match="unknown format 'xml'; choose from own, ids, csv"):
        export(result, tmp_path / "out", ["ids", "xml"])
    with pytest.raises(InputError, match="no format"):
        export(result, tmp_path / "out", [])
    with pytest.raises(InputError, match="no format of its own.*ids, csv"):
        export(result, tmp_path / "out", ["ids", "own"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "link"]
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "mine"


def test_a_stop_in_the_middle_leaves_nothing(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(start: int, stop: int) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(result.collection, "captions", stop)
    with pytest.raises(KeyboardInterrupt):
        export(result, tmp_path / "out", ["ids", "jsonl"])
    assert list(tmp_path.iterdir()) == []


def test_only_pairs_that_are_probable_enough_are_kept(result: AuditResult, tmp_path: Path) -> None:
    asked = replace(result, options={**result.options, "keep": 0.04})
    export(asked, tmp_path / "out", ["ids", "jsonl"])
    assert (tmp_path / "out/kept_ids.txt").read_text().splitlines() == [f"pair {row}" for row in (3, 4, 6)]
    assert (tmp_path / "out/flagged_ids.txt").read_text() == "pair 1\n"
    weights = [json.loads(line)["weight"] for line in (tmp_path / "out/weights.jsonl").read_text().splitlines()]
    assert weights == WEIGHTS
