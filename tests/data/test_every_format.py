"""Whatever can be opened can be described, trained on, audited and exported, and its export can be trained on.

The same pairs in the same order, of the same ids, on every way.
"""

import csv
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import truepair
from truepair.cli.main import main
from truepair.data.collection import EmbeddingCollection
from truepair.data.formats.scenes import source as scenes
from truepair.data.selection import Selection

pytestmark = pytest.mark.usefixtures("few_drawings")

IMAGES, CAPTIONS = 36, 2
WORDS = ["red", "green", "blue", "small", "large", "round", "square", "cat", "dog", "house"]
QUICK = ["--bank", "16", "--rematch", "0"]
FITTED = ["--folds", "2", "--epochs", "1", "--width", "8", "--batch-size", "32"]
"""Of the models that an audit trains, where the data are no embeddings."""
TRAIN = ["--epochs", "2", "--batch-size", "32", "--width", "8", "--minimum-count", "1", "--quiet"]


def captions(image: int) -> list[str]:
    rng = np.random.default_rng(image)
    return [" ".join(rng.choice(WORDS, 4, replace=False)) + f" number {image} {k}" for k in range(CAPTIONS)]


def pixels(image: int) -> np.ndarray:
    return np.random.default_rng(100 + image).integers(256, size=(16, 18, 3), dtype=np.uint8)


def pictures(folder: Path) -> Path:
    (folder / "img").mkdir(parents=True)
    for image in range(IMAGES):
        Image.fromarray(pixels(image)).save(folder / "img" / f"{image}.png")
    return folder


def vectors(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)


def make_csv(folder: Path, delimiter: str = ",") -> Path:
    with (pictures(folder) / f"table.{'csv' if delimiter == ',' else 'tsv'}").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["image", "caption_1", "caption_2"])
        writer.writerows([f"img/{image}.png", *captions(image)] for image in range(IMAGES))
    return folder


def make_jsonl(folder: Path) -> Path:
    lines = [{"image": f"img/{image}.png", "captions": captions(image)} for image in range(IMAGES)]
    (pictures(folder) / "table.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def make_parquet(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"image": [f"img/{k}.png" for k in range(IMAGES)], "captions": [captions(k) for k in range(IMAGES)]}
    pq.write_table(pa.table(rows), pictures(folder) / "table.parquet")
    return folder


def make_karpathy(folder: Path) -> Path:
    images = [
        {
            "filename": f"{k}.png",
            "filepath": "img",
            "split": "restval" if k % 6 == 1 else "train",
            "sentences": [{"raw": caption} for caption in captions(k)],
        }
        for k in range(IMAGES)
    ]
    (pictures(folder) / "dataset.json").write_text(json.dumps({"images": images}))
    return folder


def make_list(folder: Path) -> Path:
    rows = [{"image": f"img/{k}.png", "captions": captions(k)} for k in range(IMAGES)]
    (pictures(folder) / "table.json").write_text(json.dumps(rows))
    return folder


def make_tasks(folder: Path) -> Path:
    data = [{"image": f"/data/local-files/?d=img/{k}.png", "captions": captions(k)} for k in range(IMAGES)]
    (pictures(folder) / "tasks.json").write_text(json.dumps([{"id": k, "data": row} for k, row in enumerate(data)]))
    return folder


def make_split_folders(folder: Path) -> Path:
    for split in ("train", "test"):
        make_jsonl(folder / split)
        (table,) = (folder / split).glob("*.jsonl")
        table.rename(table.with_name("metadata.jsonl"))
    return folder


def make_shards(folder: Path) -> Path:
    folder.mkdir()
    for shard in range(2):
        with tarfile.open(folder / f"train-{shard}.tar", "w") as tar:
            for image in range(shard, IMAGES, 2):
                picture = io.BytesIO()
                Image.fromarray(pixels(image)).save(picture, "PNG")
                members = {"png": picture.getvalue(), "json": json.dumps({"caption": captions(image)}).encode()}
                for extension, data in members.items():
                    member = tarfile.TarInfo(f"{image:04}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    return folder


def make_clip_retrieval(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = IMAGES * CAPTIONS
    for part in ("img_emb", "text_emb", "metadata"):
        (folder / part).mkdir(parents=True)
    for number, span in enumerate((range(40), range(40, rows))):
        np.save(folder / f"img_emb/img_emb_{number}.npy", vectors(0, rows)[span.start : span.stop].astype(np.float16))
        np.save(folder / f"text_emb/text_emb_{number}.npy", vectors(1, rows)[span.start : span.stop].astype(np.float16))
        table = {"image_path": [f"{row}.png" for row in span], "caption": [f"caption {row}" for row in span]}
        pq.write_table(pa.table(table), folder / f"metadata/metadata_{number}.parquet")
    return folder


def make_arrays(folder: Path) -> Path:
    folder.mkdir()
    np.save(folder / "images.npy", vectors(0, IMAGES * CAPTIONS))
    np.save(folder / "texts.npy", vectors(1, IMAGES * CAPTIONS))
    return folder


def make_precomp(folder: Path) -> Path:
    folder.mkdir()
    for split, count in (("train", IMAGES), ("dev", 4)):
        features = np.random.default_rng(count).normal(size=(count, 3, 6)).astype(np.float32)
        np.save(folder / f"{split}_ims.npy", features)
        (folder / f"{split}_caps.txt").write_text("".join(f"{line}\n" for k in range(count) for line in captions(k)))
    return folder


def make_labelled(folder: Path) -> Path:
    folder.mkdir()
    rows = IMAGES * CAPTIONS
    arrays = {"I_tr": vectors(0, rows), "T_tr": vectors(1, rows), "L_tr": np.arange(rows) % 3}
    arrays |= {"I_te": vectors(2, 9), "T_te": vectors(3, 9), "L_te": np.arange(9) % 3}
    np.savez(folder / "features.npz", **arrays)
    return folder / "features.npz"


FORMATS: dict[str, Callable[[Path], Path | str]] = {
    "csv": make_csv,
    "tsv": lambda folder: make_csv(folder, "\t"),
    "jsonl": make_jsonl,
    "parquet": make_parquet,
    "karpathy": make_karpathy,
    "json": make_list,
    "tasks": make_tasks,
    "split-folders": make_split_folders,
    "shards": make_shards,
    "clip-retrieval": make_clip_retrieval,
    "arrays": make_arrays,
    "precomp": make_precomp,
    "labelled": make_labelled,
    "scenes": lambda folder: "scenes:20",
}


def opened_again(own: Path) -> truepair.Collection:
    """An export of labelled features is a folder that holds the file."""
    file = own / "features.npz"
    return truepair.open(file if file.exists() else own)


def content(pairs: truepair.Pairs) -> list[tuple[str, bytes, bytes]]:
    """What each pair is: its caption, and the features of its two sides."""
    texts = pairs.texts.features
    return [
        (
            pairs.texts.captions[text],
            np.asarray(pairs.images.features[image]).tobytes(),
            b"" if texts is None else np.asarray(texts[text]).tobytes(),
        )
        for image, text in zip(pairs.image_index, pairs.text_index, strict=True)
    ]


@pytest.fixture(params=FORMATS)
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    for split in ("dev", "test"):  # 500 drawings each would take most of the time
        monkeypatch.setitem(scenes.COUNTS, split, 8)
    return FORMATS[request.param](tmp_path / "in")


def test_open_export_open_gives_the_same_pairs(source: Path | str, tmp_path: Path) -> None:
    collection = truepair.open(source)
    pairs = collection.load()
    assert len(pairs) == len(collection) and collection.problems in ([], ())
    assert pairs.ids() == collection.ids(0, len(pairs)) and len(set(pairs.ids())) == len(pairs)
    (tmp_path / "own").mkdir()
    count = len(collection)
    everything = Selection(np.ones(count, np.bool_), np.zeros(count, np.bool_), np.ones(count, np.float32))
    collection.write(everything, tmp_path / "own")
    again = opened_again(tmp_path / "own")
    assert content(again.load()) == content(pairs)
    assert again.load().image_index.tolist() == pairs.image_index.tolist()
    if source != "scenes:20":  # drawings become a folder of pictures, whose pairs are known by these
        assert again.ids(0, len(pairs)) == pairs.ids()
    for row in (0, len(pairs) - 1):
        one, other = collection.picture(row), again.picture(row)
        assert (one is None and other is None) or np.array_equal(one, other)


def test_load_gives_the_pairs_of_open(source: Path | str) -> None:
    pairs, collection = truepair.load(source), truepair.open(source)
    assert pairs.ids() == collection.ids(0, len(collection))
    assert content(pairs) == content(collection.load())


def test_describe_train_audit_export_train(
    source: Path | str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(truepair.open(source))
    assert main(["describe", str(source)]) == 0
    assert f"{count}" in capsys.readouterr().out
    assert main(["train", str(source), "--out", str(tmp_path / "run"), *TRAIN, "--method", "infonce"]) == 0
    ids = [row["pair_id"] for row in rows_of(tmp_path / "run" / "pairs.parquet")]
    audited = [
        "audit",
        str(source),
        "--out",
        str(tmp_path / "audit"),
        *QUICK,
        *([] if isinstance(truepair.open(source), EmbeddingCollection) else FITTED),
        "--keep",
        "0",
        "--export",
        "own",
        "--quiet",
    ]
    assert main([*audited, "--quiet"]) == 0
    rows = rows_of(tmp_path / "audit" / "pairs.parquet")
    assert ids == truepair.load(source).ids()
    assert {row["pair_id"] for row in rows} == set(ids)
    own = tmp_path / "audit" / "export" / "own"
    export = own / "features.npz" if (own / "features.npz").exists() else own
    assert len(truepair.open(export)) == count - sum(row["flagged"] for row in rows)
    assert main(["train", str(export), "--out", str(tmp_path / "again"), *TRAIN]) == 0
    assert truepair.open_run(tmp_path / "again").result["method"] == "truepair"


def rows_of(path: Path) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path).to_pylist())
