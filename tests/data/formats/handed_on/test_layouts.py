"""Layouts that other tools read: what is written is what they expect, and reads back as the same pairs."""

import csv
import io
import json
import tarfile
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import truepair
from tests.data.formats.made_pictures import noise, picture_bytes, write_pictures
from truepair.audit.export.folder import FORMATS
from truepair.cli import audit as command
from truepair.data.formats.handed_on.datacomp import read_subset, write_subset
from truepair.data.formats.handed_on.img2dataset import read_scored
from truepair.data.formats.handed_on.label_studio import read_decisions
from truepair.data.formats.handed_on.layouts import LAYOUTS
from truepair.data.selection import Selection
from truepair.errors import InputError

COUNT = 6
UIDS = [f"{(k * 7919) % 97:016x}{k:016x}" for k in range(COUNT)]


def selection(count=COUNT, kept=(0, 2, 3, 5), flagged=(1, 4), unscored=()):
    p_match = np.linspace(0.9, 0.95, count).astype(np.float32)
    p_match[list(flagged)] = np.linspace(0.2, 0.1, len(flagged))
    p_match[list(unscored)] = np.nan
    rows = np.arange(count)
    flags = np.isin(rows, flagged)
    return Selection(np.isin(rows, kept), flags, np.where(flags, 0, p_match).astype(np.float32), p_match)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))


def table(tmp_path, lines):
    folder = tmp_path / "in"
    write_pictures(folder, COUNT)
    (folder / "captions.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return truepair.open(folder, progress=False)


@pytest.fixture
def pictures(tmp_path):
    return table(tmp_path, [{"image": f"p{k}.png", "caption": f'caption "{k}", with\ttab'} for k in range(COUNT)])


def written(name, collection, chosen, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    LAYOUTS[name].check(collection)
    LAYOUTS[name].write(collection, chosen, out)
    assert [path.name for path in out.iterdir()] == [LAYOUTS[name].holds]
    return out / LAYOUTS[name].holds


def same_pairs(again, collection, rows):
    assert again.captions(0, 99) == [collection.captions(row, row + 1)[0] for row in rows]
    for place, row in enumerate(rows):
        assert np.array_equal(again.picture(place), collection.picture(row))


def test_the_command_knows_them_all():
    assert (*command.FORMATS, *command.LAYOUTS) == FORMATS


def test_imagefolder_is_read_by_datasets_and_by_truepair(pictures, tmp_path):
    from datasets import load_dataset

    folder = written("imagefolder", pictures, selection(), tmp_path)
    same_pairs(truepair.open(folder, progress=False), pictures, [0, 2, 3, 5])
    rows = load_dataset("imagefolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "hf"))
    found = {row["pair_id"]: row for row in rows}
    assert set(found) == {"p0.png", "p2.png", "p3.png", "p5.png"}
    for row, name in ((0, "p0.png"), (5, "p5.png")):
        assert found[name]["caption"] == pictures.captions(row, row + 1)[0]
        assert found[name]["p_match"] == pytest.approx(float(selection().p_match[row]))
        assert np.array_equal(np.asarray(found[name]["image"]), noise(row))
    assert (folder / "p0.png").stat().st_ino == (tmp_path / "in" / "p0.png").stat().st_ino  # a link, where it can be


def test_an_imagefolder_of_several_captions_has_lists(tmp_path):
    lines = [{"image": f"p{k}.png", "captions": [f"one {k}", f"two {k}"]} for k in range(3)]
    collection = table(tmp_path, lines)
    folder = written("imagefolder", collection, selection(), tmp_path)
    entries = [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]
    assert [entry["captions"] for entry in entries] == [["one 0"], ["one 1", "two 1"], ["two 2"]]
    assert entries[1]["pair_ids"] == ["p1.png#0", "p1.png#1"]
    same_pairs(truepair.open(folder, progress=False), collection, [0, 2, 3, 5])


def test_open_clip_gets_two_columns_with_a_tab_between(pictures, tmp_path):
    import pandas

    folder = written("open-clip", pictures, selection(), tmp_path)
    same_pairs(truepair.open(folder, progress=False), pictures, [0, 2, 3, 5])
    frame = pandas.read_csv(folder / "pairs.csv", sep="\t")  # as open_clip does
    assert frame["title"].tolist() == [pictures.captions(row, row + 1)[0] for row in (0, 2, 3, 5)]
    assert [Image.open(folder / path).size for path in frame["filepath"]] == [(24, 20)] * 4


def test_fiftyone_gets_a_row_a_picture(tmp_path):
    lines = [{"image": f"p{k}.png", "captions": [f"one {k}", f"two, {k}"]} for k in range(3)]
    collection = table(tmp_path, lines)
    folder = written("fiftyone", collection, selection(unscored=[4, 5]), tmp_path)
    rows = list(csv.DictReader((folder / "labels.csv").open(newline="")))
    assert [row["filepath"] for row in rows] == ["p0.png", "p1.png"]
    assert [(row["pair_id"], row["flagged"], row["caption_count"]) for row in rows] == [
        ("p0.png#1", "true", "2"),
        ("p1.png#0", "false", "2"),
    ]
    assert [float(row["p_match"]) for row in rows] == [0.2, pytest.approx(0.92)]
    assert {path.name for path in (folder / "data").iterdir()} == {"p0.png", "p1.png"}
    same_pairs(truepair.open(folder, progress=False), collection, [1, 2])


def test_label_studio_gets_tasks_and_gives_decisions(pictures, tmp_path):
    folder = written("label-studio", pictures, selection(), tmp_path)
    tasks = json.loads((folder / "tasks.json").read_text())
    assert [task["data"]["pair_id"] for task in tasks] == ["p4.png", "p1.png"]  # the most suspicious first
    control = ElementTree.parse(folder / "labelling.xml").getroot().find("Choices")
    for task in tasks:
        (prediction,) = task["predictions"]
        (result,) = prediction["result"]
        assert (result["from_name"], result["to_name"]) == (control.get("name"), control.get("toName"))
        assert set(result["value"]["choices"]) < {choice.get("value") for choice in control}
        assert prediction["score"] == pytest.approx(1 - task["data"]["p_match"])
        assert (folder / task["data"]["image"].removeprefix("/data/local-files/?d=")).is_file()
    answers = [{"result": [{**tasks[0]["predictions"][0]["result"][0], "value": {"choices": ["matched"]}}]}]
    done = [{**tasks[0], "annotations": answers}, {**tasks[1], "annotations": tasks[1]["predictions"]}]
    (tmp_path / "done.json").write_text(json.dumps([*done, {"data": {"pair_id": "undecided"}, "annotations": []}]))
    assert read_decisions(tmp_path / "done.json") == {"p4.png": True, "p1.png": False}


@pytest.mark.parametrize("content", ["{}", "[{}]", "[1]", "no json", '[{"data": {"pair_id": 1}, "annotations": [{}]}]'])
def test_what_is_no_export_of_label_studio_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match="expected"):
        read_decisions(tmp_path / "x.json")


def crawl(folder, *, parquet=True, uid=True):
    """Two shards of img2dataset; the third sample of each failed to download."""
    folder.mkdir()
    for shard in range(2):
        rows = []
        with tarfile.open(folder / f"{shard:05}.tar", "w") as tar:
            for place in range(4):
                number, key = 3 * shard + place - (place > 2), f"{shard:05}{place:04}"
                failed = place == 2
                rows.append({"key": key, "url": f"http://x/{key}", "status": "failed" if failed else "success"})
                rows[-1] |= {"uid": UIDS[number]} if uid and not failed else {}
                for ending, data in (("jpg", picture_bytes(noise(number), "JPEG")), ("txt", f"text {number}".encode())):
                    entry = tarfile.TarInfo(f"{key}.{ending}")
                    entry.size = len(data)
                    if not failed:
                        tar.addfile(entry, io.BytesIO(data))
        if parquet:
            names = list(dict.fromkeys(name for row in rows for name in row))
            pq.write_table(pa.table({n: [row.get(n) for row in rows] for n in names}), folder / f"{shard:05}.parquet")
    return truepair.open(folder, progress=False)


def test_img2dataset_keeps_all_rows_and_gets_scores(tmp_path):
    collection = crawl(tmp_path / "crawl")
    folder = written("img2dataset", collection, selection(), tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["00000.parquet", "00001.parquet"]
    before, after = (pq.read_table(root / "00001.parquet") for root in (tmp_path / "crawl", folder))
    assert after.column_names == [*before.column_names, "p_match", "flagged", "kept"]
    assert after.select(before.column_names).equals(before)
    found = read_scored(folder / "00001.parquet")
    assert found["000010002"] == (None, None, None)
    assert found["000010001"] == (pytest.approx(0.1), True, False)
    assert found["000010003"] == (pytest.approx(0.95), False, True)


def test_datacomp_gets_the_uids_of_kept_samples_sorted(tmp_path):
    path = written("datacomp", crawl(tmp_path / "crawl"), selection(), tmp_path)
    stored = np.load(path, allow_pickle=False)
    expected = np.array([(int(u[:16], 16), int(u[16:32], 16)) for u in np.array(UIDS)[[0, 2, 3, 5]]], np.dtype("u8,u8"))
    expected.sort()  # as the resharder's documentation has it
    assert stored.dtype == expected.dtype and stored.tolist() == expected.tolist()
    assert read_subset(path) == sorted(UIDS[k] for k in (0, 2, 3, 5))


def test_ids_that_are_uids_are_taken_as_they_are(tmp_path):
    high = "f" * 32
    write_subset(tmp_path / "subset.npy", [high, UIDS[1], high.upper()])
    assert read_subset(tmp_path / "subset.npy") == [UIDS[1], high]


def test_what_is_no_subset_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InputError, match="holds float64 of shape \\(3,\\); expected \\(N,\\) of the dtype u8,u8"):
        read_subset(tmp_path / "x.npy")
    np.save(tmp_path / "y.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read as .npy"):
        read_subset(tmp_path / "y.npy")


def test_pictures_inside_shards_are_written_out(tmp_path):
    collection = crawl(tmp_path / "crawl")
    folder = written("imagefolder", collection, selection(), tmp_path)
    same_pairs(truepair.open(folder, progress=False), collection, [0, 2, 3, 5])
    assert (folder / "000000000.jpg").read_bytes() == picture_bytes(noise(0), "JPEG")


def test_drawings_are_written_as_png(tmp_path):
    collection = truepair.open("scenes:4", progress=False)
    chosen = selection(len(collection), kept=(0, 5), flagged=(1,))
    folder = written("open-clip", collection, chosen, tmp_path)
    same_pairs(truepair.open(folder, progress=False), collection, [0, 5])


NO_PICTURES = ("imagefolder", "open-clip", "label-studio", "fiftyone")


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_a_layout_cannot_express_is_refused_before_long_work(name, tmp_path, pictures):
    np.save(tmp_path / "i.npy", np.eye(70, 8, dtype=np.float32) + 1)
    vectors = f"{tmp_path / 'i.npy'},{tmp_path / 'i.npy'}"
    wrong = truepair.open(vectors) if name in NO_PICTURES else pictures
    why = {"datacomp": "uids of 32 hexadecimal digits", "img2dataset": "is no set of tar shards"}
    with pytest.raises(InputError, match=why.get(name, "has no pictures that")):
        truepair.audit(wrong, tmp_path / "audit", export=[name], progress=False)
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize("name", ["img2dataset", "datacomp"])
def test_shards_without_their_parquet_are_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"no 00000\.parquet beside 00000\.tar"):
        LAYOUTS[name].check(crawl(tmp_path / "crawl", parquet=False))


def test_a_parquet_that_has_scores_already_is_refused(tmp_path):
    collection = crawl(tmp_path / "crawl")
    path = tmp_path / "crawl" / "00000.parquet"
    pq.write_table(pq.read_table(path).append_column("flagged", pa.array([True] * 4)), path)
    with pytest.raises(InputError, match="has a column flagged already"):
        LAYOUTS["img2dataset"].check(collection)


def test_names_never_lead_outside_and_never_meet(tmp_path):
    from truepair.data.formats.handed_on.pictures import WrittenPictures

    collection = truepair.open("scenes:4", progress=False)
    names = ["../../a.png", "/a.png", "A.PNG", "..", "b"][: len(collection.pairs.images)]
    object.__setattr__(collection.pairs.images, "ids", tuple(names))
    put = WrittenPictures(collection, tmp_path / "out")
    first = np.unique(collection.pairs.image_index, return_index=True)[1]
    assert [put.name(int(row)) for row in first] == ["a.png", "a-1.png", "A-2.PNG", "picture.png"][: len(first)]
    assert all(path.is_relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.png"))
