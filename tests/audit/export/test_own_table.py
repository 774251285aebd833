import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from truepair.audit.export import export
from truepair.audit.result import AuditResult
from truepair.data.collection import PairsCollection
from truepair.data.formats.tables import write as table_writer
from truepair.data.formats.tables.tables import TableCollection
from truepair.data.noise import inject_noise
from truepair.data.open import open as open_source
from truepair.errors import InputError

Audited = Callable[..., AuditResult]
COUNT = 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures, and a cache of their own."""
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in").mkdir()
    for k in range(COUNT):
        pixels = np.random.default_rng(k).integers(256, size=(16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "in" / f"{k}.png")
    return tmp_path / "in"


def run(audited: Audited, table: Path, out: Path, flagged: Sequence[str], **options: Any) -> tuple[Path, AuditResult]:
    """Exports the table without the flagged captions; checks that what is left is what was kept."""
    before = table.read_bytes()
    collection = open_source(table, progress=False, **options)
    assert isinstance(collection, TableCollection)
    captions = collection.captions(0, 99)
    rows = [row for row, caption in enumerate(captions) if caption in flagged]
    assert len(rows) == len(flagged)
    result = audited(collection, rows, source=str(table), **options)
    (own,) = export(result, out, ["own"])
    assert table.read_bytes() == before
    names = {path.name for path in own.iterdir()}
    assert {table.name, "README.txt", "weights.npy"} <= names
    kept = np.setdiff1d(np.arange(len(collection)), rows)
    again = open_source(own, progress=False, **options)
    assert isinstance(again, TableCollection)
    assert again.captions(0, 99) == [captions[row] for row in kept]
    assert again.image_names(0, 99) == [collection.image_names(row, row + 1)[0] for row in kept]
    for now, row in enumerate(kept):
        assert np.array_equal(again.picture(now), collection.picture(int(row)))
        image, before_image = (found.pairs.image_index[at] for found, at in ((again, now), (collection, row)))
        assert np.array_equal(again.pairs.images.features[image], collection.pairs.images.features[before_image])
    pictures = {name for name in names if name.endswith(".png")}
    assert len(pictures) >= len(again.pairs.images)
    assert all((own / name).stat().st_ino == (table.parent / name).stat().st_ino for name in pictures)
    assert np.array_equal(np.load(own / "weights.npy"), result.verdict.p_match[kept])
    return own / table.name, result


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_records_keep_their_bytes(folder: Path, tmp_path: Path, audited: Audited, encoding: str, end: str) -> None:
    records = [
        'price,image,"note, long",caption',
        "1.50,0.png,,first grün",
        '2,1.png,"a ""b""",  second ',
        '3,2.png,,"third',
        'in two lines"',
        "",
        "4,3.png,too,many,fourth",
        '05,"4.png",x,"fifth"',
        "6,none.png,x,sixth",
        "",
        "7,5.png,é,seventh",
    ]
    text = end.join(records)
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (folder / "table.csv").write_bytes((mark + text).encode(encoding))
    written, result = run(audited, folder / "table.csv", tmp_path / "out", ["second"])
    kept = end.join([*records[:2], *records[3:5], records[7], records[10]])
    expected = kept.encode("utf-16") if encoding.startswith("utf-16") else kept.encode(encoding)
    assert written.read_bytes() == expected
    assert len(result.collection) == 5
    assert "4 pairs" in (written.parent / "README.txt").read_text()


def test_tsv_with_several_caption_columns(folder: Path, tmp_path: Path, audited: Audited) -> None:
    lines = ["image\tcaption_1\tid\tcaption_2", "0.png\ta\t07\tb", '1.png\tc\t08\t"d ""x"""', '"2.png"\te\t09\t']
    (folder / "table.tsv").write_text("\n".join(lines) + "\n")
    written, _ = run(audited, folder / "table.tsv", tmp_path / "out", ["a", 'd "x"'])
    assert written.read_text() == "\n".join([lines[0], "0.png\t\t07\tb", "1.png\tc\t08\t", lines[3]]) + "\n"


def test_columns_that_share_a_name_are_kept(folder: Path, tmp_path: Path, audited: Audited) -> None:
    lines = ["image,caption_1,caption_2,,", "0.png,a,b,x,y", "1.png,c,d,,", "2.png,e,f,1,"]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    written, _ = run(audited, folder / "table.csv", tmp_path / "out", ["b", "c"])
    assert written.read_text() == "\n".join([lines[0], "0.png,a,,x,y", "1.png,,d,,", lines[3]]) + "\n"


@pytest.mark.parametrize("names", [("3.png", "images/3.png"), ("images/3.png", "./3.png"), ("0.png", "./0.png")])
def test_a_picture_named_in_two_ways_is_one(
    folder: Path, tmp_path: Path, audited: Audited, names: tuple[str, str]
) -> None:
    (folder / "images").mkdir()
    (folder / "3.png").rename(folder / "images" / "3.png")
    rows = [(names[0], "a"), (names[1], "b"), ("1.png", "c")]
    (folder / "table.csv").write_text("image,caption\n" + "".join(f"{name},{said}\n" for name, said in rows))
    collection = open_source(folder, progress=False)
    assert isinstance(collection, PairsCollection)
    assert collection.pairs.image_index.tolist() == [0, 0, 1] and collection.image_names(0, 2) == [names[0]] * 2
    (own,) = export(audited(collection, [2], source=folder), tmp_path / "out", ["own"])
    again = open_source(own, progress=False)
    assert isinstance(again, PairsCollection)
    assert again.pairs.image_index.tolist() == [0, 0] and len(list(own.rglob("*.png"))) == 1


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_half_a_letter_is_written_as_it_came(folder: Path, tmp_path: Path, audited: Audited, ending: str) -> None:
    entries = [{"image": f"{k}.png", "captions": [f"words {k}", f"cut {k} \ud83d"]} for k in range(2)]
    lines = [json.dumps(entry) for entry in entries]
    (folder / f"table.{ending}").write_text("\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]")
    written, _ = run(audited, folder / f"table.{ending}", tmp_path / "out", ["words 1"])
    text = written.read_text("utf-8")
    found = [json.loads(line) for line in text.splitlines()] if ending == "jsonl" else json.loads(text)
    assert found == [entries[0], {"image": "1.png", "captions": ["cut 1 \ud83d"]}]


def test_jsonl_with_lists_and_splits(folder: Path, tmp_path: Path, audited: Audited) -> None:
    lines = [
        '{"image": "0.png", "captions": ["a", "b"], "split": "train", "n": 1.0}',
        '{"n":2e0,"split":"train","image":"1.png","captions":["c","grün","","e"]}',
        "no json",
        '{"image": "2.png", "captions": ["f"], "split": "val"}',
        '{"image": "none.png", "captions": ["g"], "split": "train"}',
        '{"image": "3.png", "captions": ["h"], "split": "train"}',
        '{"image": "none.png", "captions": ["i"], "split": "val"}',
    ]
    (folder / "table.jsonl").write_text("\n".join(lines) + "\n")
    written, _ = run(audited, folder / "table.jsonl", tmp_path / "out", ["c", "h"], split="train")
    found = written.read_text().splitlines()
    assert (found[0], found[2:]) == (lines[0], [lines[3], lines[6]])
    assert found[1] == '{"n": 2.0, "split": "train", "image": "1.png", "captions": ["grün", "e"]}'
    assert "split train; rows of other splits" in (written.parent / "README.txt").read_text()
    whole, _ = run(audited, folder / "table.jsonl", tmp_path / "whole", ["c", "h", "f"])
    assert whole.read_text().splitlines() == [lines[0], found[1]]
    dev, _ = run(audited, folder / "table.jsonl", tmp_path / "dev", [], split="dev")
    assert dev.read_text().splitlines() == [line for number, line in enumerate(lines) if number not in (2, 6)]


def test_jsonl_in_utf16(folder: Path, tmp_path: Path, audited: Audited) -> None:
    lines = [json.dumps({"image": f"{k}.png", "caption": f"wörter {k}"}, ensure_ascii=False) for k in range(3)]
    (folder / "table.jsonl").write_text("\r\n".join(lines), encoding="utf-16")
    written, _ = run(audited, folder / "table.jsonl", tmp_path / "out", ["wörter 1"])
    assert written.read_bytes().decode("utf-16") == f"{lines[0]}\r\n{lines[2]}"


def test_karpathy(folder: Path, tmp_path: Path, audited: Audited) -> None:
    images = [
        {
            "filename": f"{k}.png",
            "imgid": k,
            "split": "train" if k < 3 else "test",
            "sentids": [10 * k, 10 * k + 1],
            "sentences": [{"raw": f"caption {k} {s}", "tokens": ["caption"], "sentid": 10 * k + s} for s in range(2)],
        }
        for k in range(4)
    ]
    (folder / "dataset.json").write_text(json.dumps({"images": images, "dataset": "own"}))
    flagged = ["caption 0 0", "caption 2 0", "caption 2 1"]
    written, _ = run(audited, folder / "dataset.json", tmp_path / "out", flagged, split="train")
    images[0]["sentids"], images[0]["sentences"] = [1], images[0]["sentences"][1:]  # type: ignore[index]
    assert json.loads(written.read_text()) == {"images": [images[0], images[1], images[3]], "dataset": "own"}


@pytest.mark.parametrize("step", [1, 3, 4096])
def test_parquet(folder: Path, tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(table_writer, "_BATCH_ROWS", step)
    columns = {
        "image": [f"{k}.png" for k in range(COUNT)],
        "captions": [[f"a{k}", f"b{k}"] if k % 2 else [f"a{k}"] for k in range(COUNT)],
        "n": pa.array(range(COUNT), type=pa.int8()),
        "split": ["train"] * 4 + ["test"] * 2,
    }
    table = pa.table(columns).replace_schema_metadata({"who": "me"})
    pq.write_table(table, folder / "table.parquet", row_group_size=4)
    written, _ = run(audited, folder / "table.parquet", tmp_path / "out", ["a0", "b3"], split="train")
    found = pq.read_table(written)
    assert found.schema.equals(pq.read_schema(folder / "table.parquet"), check_metadata=True)
    assert found.column("n").to_pylist() == [1, 2, 3, 4, 5]
    assert found.column("captions").to_pylist() == [["a1", "b1"], ["a2"], ["a3"], ["a4"], ["a5", "b5"]]
    whole, _ = run(audited, folder / "table.parquet", tmp_path / "whole", ["a0", "b3", "a5"])
    assert pq.read_table(whole).column("captions").to_pylist() == [["a1", "b1"], ["a2"], ["a3"], ["a4"], ["b5"]]


def test_a_column_of_parquet_that_is_damaged(folder: Path, tmp_path: Path, audited: Audited) -> None:
    texts = [f"other {k} " * 40 for k in range(COUNT)]
    columns = {"image": [f"{k}.png" for k in range(COUNT)], "caption": list("abcdef"), "other": texts}
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=4, compression="gzip", use_dictionary=False)
    start = pq.read_metadata(path).row_group(0).column(2).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 20] = bytes(255 for _ in range(20))
    path.write_bytes(data)
    collection = open_source(path, progress=False)
    assert len(collection) == COUNT
    with pytest.raises(InputError, match="rows 0 to 3 cannot be read in all columns"):
        export(audited(collection, [0, 2, 3]), tmp_path / "out", ["own"])
    (own,) = export(audited(collection, [0, 1, 2, 3]), tmp_path / "out", ["own"])
    assert pq.read_table(own / "table.parquet").column("other").to_pylist() == texts[4:]


def test_noise_that_was_injected_is_not_in_the_table(folder: Path, tmp_path: Path, audited: Audited) -> None:
    lines = [json.dumps({"image": f"{k}.png", "caption": f"words {k}"}) for k in range(COUNT)]
    (folder / "table.jsonl").write_text("\n".join(lines))
    collection = open_source(folder, progress=False)
    assert isinstance(collection, PairsCollection)
    collection.pairs = inject_noise(collection.pairs, 1.0, seed=0)
    with pytest.raises(InputError, match="noise was injected"):
        export(audited(collection, [0], source=folder), tmp_path / "out", ["own"])
    kept, _ = export(audited(collection, [0], source=folder), tmp_path / "out", ["jsonl"])
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    images = collection.pairs.image_index[1:]
    assert [(row["image"], row["caption"]) for row in rows] == [
        (f"{image}.png", f"words {k}") for k, image in enumerate(images, start=1)
    ]
