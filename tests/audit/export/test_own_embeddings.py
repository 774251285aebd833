from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truepair.audit.export import export
from truepair.audit.result import AuditResult
from truepair.data.formats.embeddings import write as own_embeddings
from truepair.data.formats.embeddings.files import open_embeddings

Audited = Callable[..., AuditResult]
COUNTS = (9, 2, 7)


def clip_folder(folder: Path, dtype: str) -> Path:
    rng = np.random.default_rng(0)
    for part in ("img_emb", "text_emb", "metadata"):
        (folder / part).mkdir(parents=True)
    for number, rows in enumerate(COUNTS):
        for part in ("img_emb", "text_emb"):
            np.save(folder / part / f"{part}_{number:02d}.npy", rng.normal(size=(rows, 3)).astype(dtype))
        columns = {
            "image_path": [f"{number}/{row}.jpg" for row in range(rows)],
            "caption": [f"caption {number} {row}" for row in range(rows)],
            "sizes": [[row, number] for row in range(rows)],
        }
        if number != 2:
            pq.write_table(pa.table(columns), folder / f"metadata/metadata_{number:02d}.parquet", row_group_size=4)
    return folder


@pytest.fixture(params=[4, 10_000])
def small_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_embeddings, "_CHUNK_BYTES", 12 * request.param)
    monkeypatch.setattr(own_embeddings, "_BATCH_ROWS", request.param)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
@pytest.mark.parametrize("flagged", [[], [9, 10], [0, 3, 4, 5, 6, 7, 8, 17], [*range(17)]])
def test_the_layout_of_clip_retrieval(tmp_path: Path, audited: Audited, dtype: str, flagged: list[int]) -> None:
    folder = clip_folder(tmp_path / "in", dtype)
    collection = open_embeddings(folder)
    rows = [row for row in range(18) if row != 12]  # one that could not be scored
    result = audited(collection, flagged, rows=rows)
    (own,) = export(result, tmp_path / "out", ["own"])
    kept = [row for row in rows if row not in flagged]
    found = open_embeddings(own)
    assert list(found.problems) == []
    for side in (0, 1):
        assert np.array_equal(found.read(0, 99)[side], collection.read(0, 99)[side][kept])
    assert found.captions(0, 99) == [collection.captions(row, row + 1)[0] for row in kept]
    assert found.shards[0].images.dtype == np.dtype(dtype)
    weights = [np.load(path) for path in sorted((own / "weights").iterdir())]
    assert [len(part) for part in weights] == [shard.rows for shard in found.shards]
    assert np.array_equal(np.concatenate(weights), result.verdict.p_match[np.isin(rows, kept)])
    names = {path.name for path in own.rglob("*") if path.is_file()}
    assert ("img_emb_01.npy" in names) == ("metadata_01.parquet" in names) == bool({9, 10} & set(kept))
    for path in (own / "metadata").iterdir() if (own / "metadata").exists() else ():
        table, source = pq.read_table(path), pq.read_table(folder / "metadata" / path.name)
        assert table.schema == source.schema
        assert set(table.column("image_path").to_pylist()) <= set(source.column("image_path").to_pylist())
        assert [row["caption"] for row in table.to_pylist()] == [
            f"caption {row['sizes'][1]} {row['sizes'][0]}" for row in table.to_pylist()
        ]


@pytest.mark.usefixtures("small_steps")
def test_two_arrays(tmp_path: Path, audited: Audited) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("images", "texts"):
        np.save(folder / f"{name}.npy", rng.normal(size=(12, 3)).astype(np.float32))
    (folder / "captions.txt").write_bytes(b"".join(b"line \xff %d\r\n" % row for row in range(12)))
    collection = open_embeddings(folder)
    result = audited(collection, [0, 5, 11])
    (own,) = export(result, tmp_path / "out", ["own"])
    kept = [row for row in range(12) if row not in (0, 5, 11)]
    assert sorted(path.name for path in own.iterdir()) == ["captions.txt", "images.npy", "texts.npy", "weights.npy"]
    assert (own / "captions.txt").read_bytes() == b"".join(b"line \xff %d\r\n" % row for row in kept)
    for name in ("images", "texts"):
        assert np.array_equal(np.load(own / f"{name}.npy"), np.load(folder / f"{name}.npy")[kept])
    assert np.array_equal(np.load(own / "weights.npy"), result.verdict.p_match[kept])
    other = tmp_path / "other.npy"
    np.save(other, np.load(folder / "texts.npy"))
    by_name = open_embeddings(f"{folder / 'images.npy'},{other}")
    (own,) = export(audited(by_name, [1]), tmp_path / "named", ["own"])
    assert np.array_equal(np.load(own / "texts.npy"), np.delete(np.load(other), 1, axis=0))
