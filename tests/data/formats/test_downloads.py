"""What img2dataset leaves beside its shards: downloads that failed are counted."""

import io
import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truepair
from tests.data.formats.made_pictures import noise, picture_bytes
from truepair.errors import InputError

STATUS = ("success", "failed_to_download", "success", "failed_to_resize", "failed_to_download", "success")


def crawl(folder: Path, shard: int, status: tuple[str, ...]) -> list[str]:
    """A shard with its parquet and its statistics, as img2dataset writes them; returns the keys in it."""
    folder.mkdir(exist_ok=True)
    rows = [
        {"url": "http://x/y", "caption": f"c {k}", "key": f"{shard:05}{k:04}", "status": s, "width": 24}
        for k, s in enumerate(status)
    ]
    kept = [row for row in rows if row["status"] == "success"]
    with tarfile.open(folder / f"{shard:05}.tar", "w") as tar:
        for number, row in enumerate(kept):
            picture = picture_bytes(noise(10 * shard + number), "JPEG")
            members = {"jpg": picture, "txt": row["caption"].encode(), "json": json.dumps(row).encode()}
            for ending, data in members.items():
                member = tarfile.TarInfo(f"{row['key']}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{shard:05}.parquet")
    (folder / f"{shard:05}_stats.json").write_text(json.dumps({"count": len(rows), "successes": len(kept)}))
    return [row["key"] for row in kept]


def test_failed_downloads_are_counted(tmp_path: Path) -> None:
    keys = crawl(tmp_path / "in", 0, STATUS) + crawl(tmp_path / "in", 1, ("success", "success"))
    found = truepair.open(tmp_path / "in", progress=False)
    assert found.ids(0, 9) == keys and found.captions(0, 9) == ["c 0", "c 2", "c 5", "c 0", "c 1"]
    (problem,) = found.problems
    assert (problem.file, problem.row, problem.reason, problem.used) == ("00000.tar", -1, "failed-downloads", True)
    assert "3 of 6 downloads failed (failed_to_download 2, failed_to_resize 1)" in problem.detail


@pytest.mark.parametrize("content", [None, "no parquet", {"key": ["a"]}, {"status": ["failed"]}])
def test_without_a_usable_parquet_the_shards_speak(tmp_path: Path, content: object) -> None:
    keys = crawl(tmp_path / "in", 0, STATUS)
    table = tmp_path / "in" / "00000.parquet"
    table.unlink()
    if isinstance(content, str):
        table.write_text(content)
    elif content is not None:
        pq.write_table(pa.table(content), table)
    found = truepair.open(tmp_path / "in", progress=False)
    assert found.ids(0, 9) == keys and found.problems == []


def test_the_list_of_downloads_alone_is_refused(tmp_path: Path) -> None:
    crawl(tmp_path / "in", 0, STATUS)
    with pytest.raises(InputError, match=r"open the \.tar shards beside it"):
        truepair.open(tmp_path / "in" / "00000.parquet", progress=False)
