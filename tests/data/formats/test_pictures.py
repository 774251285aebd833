from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.made_pictures import bomb, noise, picture_bytes
from truepair.data.pictures import pictures
from truepair.data.pictures.pictures import Failure, Place, prepare, read_pixels
from truepair.encoders.descriptor import grid_descriptor
from truepair.encoders.windows import Windows


def write(folder: Path, data: bytes, name: str = "p.jpg") -> Place:
    (folder / name).write_bytes(data)
    return Place(str(folder / name))


def described(place: Place) -> object:
    return prepare(place, Windows())


def reason(result: object) -> str:
    assert isinstance(result, Failure)
    assert "object at 0x" not in result.detail
    return result.reason


def test_pixels_by_content_and_from_inside_a_file(tmp_path: Path) -> None:
    data = picture_bytes(noise(0))
    assert np.array_equal(read_pixels(write(tmp_path, data)), noise(0))  # PNG named .jpg
    inside = write(tmp_path, b"#" * 700 + data + b"#" * 90, "shard.tar")
    assert np.array_equal(read_pixels(Place(inside.file, 700, len(data))), noise(0))
    assert np.array_equal(described(inside._replace(offset=700, size=len(data))), grid_descriptor(noise(0)))


def test_bad_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo = picture_bytes(noise(1, 60, 80), "JPEG")
    assert reason(described(write(tmp_path, photo[: len(photo) // 2]))) == "broken-picture"
    assert reason(described(write(tmp_path, picture_bytes(noise(1))[:200]))) == "broken-picture"
    assert reason(described(write(tmp_path, b"hello"))) == "not-a-picture"
    assert reason(described(write(tmp_path, b""))) == "not-a-picture"
    assert reason(described(write(tmp_path, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n"))) == "not-a-picture"
    assert reason(described(write(tmp_path, picture_bytes(noise(1, 13, 40))))) == "tiny-picture"
    assert reason(described(Place(str(tmp_path / "none.png")))) == "unreadable-picture"
    assert reason(described(Place(str(tmp_path)))) == "unreadable-picture"
    monkeypatch.setattr(pictures, "LARGEST_FILE", 100)
    assert reason(described(write(tmp_path, picture_bytes(noise(1))))) == "huge-picture"


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("width", "height"), [(10_001, 10_000), (60_000, 60_000)])
def test_bombs_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, height: int) -> None:
    from PIL import ImageFile

    def decode(*_: object) -> None:
        raise AssertionError("a bomb was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decode)
    assert reason(described(write(tmp_path, bomb(width, height)))) == "huge-picture"
