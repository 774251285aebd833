"""Pictures that lie under another path now: the files are known, and are not described again."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.made_pictures import noise, picture_bytes, write_pictures
from tests.data.formats.test_shards import samples, write_tar
from truepair.data.open import load
from truepair.data.pairs import Array
from truepair.data.pictures import describing
from truepair.data.pictures.pictures import Failure, Place
from truepair.encoders.encoder import Encoder


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of pictures that were described, as it goes."""
    prepare, seen = describing.prepare, list[str]()

    def noted(place: Place, encoder: Encoder) -> Array | Failure:
        seen.append(Path(place.file).name)
        return prepare(place, encoder)

    monkeypatch.setattr(describing, "prepare", noted)
    return seen


def write_table(folder: Path, rows: int) -> Path:
    write_pictures(folder, rows)
    (folder / "table.csv").write_text("image,caption\n" + "".join(f"p{k}.png,caption {k}\n" for k in range(rows)))
    return folder


def linked(folder: Path, copy: Path) -> Path:
    """A copy of hard links, as an export of what an audit kept."""
    copy.mkdir()
    for path in folder.iterdir():
        os.link(path, copy / path.name)
    return copy


def test_a_moved_folder_and_a_copy_of_links(tmp_path: Path, described: list[str]) -> None:
    folder = write_table(tmp_path / "given", 4)
    first = load(folder).images.features
    assert sorted(described) == ["p0.png", "p1.png", "p2.png", "p3.png"]
    described.clear()
    copy = linked(folder, tmp_path / "cleaned")
    (copy / "table.csv").unlink()
    (copy / "table.csv").write_text("image,caption\np3.png,c\np1.png,d\n")
    assert np.array_equal(load(copy).images.features, first[[3, 1]])
    moved = folder.rename(tmp_path / "moved")
    assert np.array_equal(load(moved).images.features, first) and described == []


def test_other_files_of_the_same_name_are_described(tmp_path: Path, described: list[str]) -> None:
    folder = write_table(tmp_path / "given", 3)
    load(folder)
    copy = linked(folder, tmp_path / "cleaned")
    (copy / "p1.png").unlink()
    (copy / "p1.png").write_bytes(picture_bytes(noise(99)))
    described.clear()
    found = load(copy).images.features
    assert described == ["p1.png"] and not np.array_equal(found[1], load(folder).images.features[1])
    described.clear()
    status = (folder / "p2.png").stat()
    (folder / "p2.png").write_bytes(picture_bytes(noise(77)))  # in place: both folders see it
    os.utime(folder / "p2.png", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    load(copy)
    assert described == ["p2.png"]


def test_another_picture_in_a_file_of_the_same_number_size_and_time_is_described(
    tmp_path: Path, described: list[str]
) -> None:
    """As where a folder was deleted and another one unpacked: the numbers of its files are given to new ones."""
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "a.bmp").write_bytes(picture_bytes(noise(1), "BMP"))
    (folder / "table.csv").write_text("image,caption\na.bmp,a\n")
    first = load(folder).images.features
    status = (folder / "a.bmp").stat()
    (folder / "a.bmp").rename(tmp_path / "b.bmp")
    with (tmp_path / "b.bmp").open("r+b") as file:
        file.write(picture_bytes(noise(2), "BMP"))
    os.utime(tmp_path / "b.bmp", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (tmp_path / "b.bmp").stat()[:2] == status[:2] and (tmp_path / "b.bmp").stat().st_size == status.st_size
    (tmp_path / "table.csv").write_text("image,caption\nb.bmp,b\n")
    described.clear()
    assert not np.array_equal(load(tmp_path).images.features, first) and described == ["b.bmp"]


def test_a_damaged_digest_of_files_has_none(tmp_path: Path, cache: Path, described: list[str]) -> None:
    folder = write_table(tmp_path / "given", 2)
    load(folder)
    for path in cache.glob("*.files.npy"):
        path.write_bytes(path.read_bytes()[:-3])
    described.clear()
    load(linked(folder, tmp_path / "cleaned"))
    assert sorted(described) == ["p0.png", "p1.png"]


def test_shards_that_were_moved(tmp_path: Path, described: list[str]) -> None:
    write_tar(tmp_path / "given" / "train-0.tar", samples(0, 3))
    first = load(tmp_path / "given").images.features
    assert len(described) == 3
    shutil.move(tmp_path / "given", tmp_path / "moved")
    assert np.array_equal(load(tmp_path / "moved").images.features, first) and len(described) == 3
