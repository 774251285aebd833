from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.made_pictures import noise, write_pictures
from truepair.data.config import Reading
from truepair.data.pairs import Array
from truepair.data.pictures import describing, feature_cache
from truepair.data.pictures.feature_cache import Described, describe_all
from truepair.data.pictures.known_features import DIGEST, Digests
from truepair.data.pictures.pictures import Failure, Place
from truepair.encoders.descriptor import grid_descriptor
from truepair.encoders.encoder import Encoder
from truepair.encoders.windows import Windows
from truepair.errors import TruepairError

COUNT = 23
BAD = (0, 7, 8, 22)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(feature_cache, "BLOCK", 5)
    monkeypatch.setattr(Windows, "batch", 2)
    write_pictures(tmp_path / "pictures", COUNT)
    for row in BAD:
        (tmp_path / "pictures" / f"p{row}.png").write_bytes(b"no picture")
    return tmp_path / "pictures"


def digests(count: int, key: str, first: int = 0) -> Digests:
    return np.array([f"{key}{row:010}".encode() for row in range(first, first + count)], dtype="S16").view(DIGEST)


def describe_folder(folder: Path, *, key: str = "key") -> Described:
    return describe_all(lambda row: Place(str(folder / f"p{row}.png")), digests(COUNT, key), Windows())


def check(described: Described) -> None:
    good = [row for row in range(COUNT) if row not in BAD]
    assert described.rows.tolist() == good
    assert sorted(described.failures) == list(BAD)
    assert all(failure.reason == "not-a-picture" for failure in described.failures.values())
    assert isinstance(described.features, np.memmap) and described.features.dtype == np.float16
    expected = np.stack([grid_descriptor(noise(row)).astype(np.float16) for row in good])
    assert np.array_equal(described.features, expected)


def test_features_and_failures_in_order(folder: Path) -> None:
    check(describe_folder(folder))


def test_the_cache_is_used_unless_it_is_damaged(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = describe_folder(folder)
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".npy", ".npy"]
    before = [path.stat().st_mtime_ns for path in sorted(cache.iterdir())]
    with monkeypatch.context() as patch:
        patch.setattr(describing, "prepare", lambda *_: pytest.fail("described again"))
        check(describe_folder(folder))
    assert before == [path.stat().st_mtime_ns for path in sorted(cache.iterdir())]
    del described
    (features,) = set(cache.glob("*.npy")) - set(cache.glob("*.digests.npy"))
    features.write_bytes(features.read_bytes()[:-100])
    check(describe_folder(folder))
    (notes,) = cache.glob("*.json")
    notes.write_text('{"done": 23}')
    check(describe_folder(folder))


def test_goes_on_after_a_kill_where_it_was(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, seen = describing.prepare, list[str]()

    def until(stop: int, place: Place, encoder: Encoder) -> Array | Failure:
        if place.file.endswith(f"p{stop}.png"):
            raise KeyboardInterrupt
        seen.append(Path(place.file).stem)
        return prepare(place, encoder)

    for stop in (3, 12, 17):
        monkeypatch.setattr(describing, "prepare", lambda *what, stop=stop: until(stop, *what))
        with pytest.raises(KeyboardInterrupt):
            describe_folder(folder)
        assert not list(cache.glob("*.npy"))
    seen.clear()
    monkeypatch.setattr(describing, "prepare", lambda *what: until(-1, *what))
    check(describe_folder(folder))
    assert sorted(seen, key=lambda name: int(name[1:])) == [f"p{row}" for row in range(16, COUNT)]
    assert not list(cache.glob("*.part*"))


def test_a_part_that_lost_bytes_is_begun_anew(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = describing.prepare

    def fail_late(place: Place, encoder: Encoder) -> Array | Failure:
        if place.file.endswith("p12.png"):
            raise KeyboardInterrupt
        return prepare(place, encoder)

    with monkeypatch.context() as patch:
        patch.setattr(describing, "prepare", fail_late)
        with pytest.raises(KeyboardInterrupt):
            describe_folder(folder)
    (part,) = cache.glob("*.part")
    part.write_bytes(part.read_bytes()[:1000])
    check(describe_folder(folder))


def test_files_that_could_not_be_read_are_tried_again(folder: Path) -> None:
    picture = folder / "p3.png"
    data = picture.read_bytes()
    picture.unlink()
    described = describe_folder(folder)
    assert described.failures[3].reason == "unreadable-picture"
    assert 3 in describe_folder(folder).failures
    picture.write_bytes(data)
    check(describe_folder(folder))


def test_no_good_picture_and_no_picture(tmp_path: Path) -> None:
    described = describe_all(lambda row: Place(str(tmp_path / str(row))), digests(3, "a"), Windows())
    assert described.features.shape == (0, 36, 56) and sorted(described.failures) == [0, 1, 2]
    assert len(describe_all(lambda row: Place(""), digests(0, "b"), Windows()).rows) == 0


def test_a_cache_that_cannot_be_written(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "file").write_text("")
    place, nowhere = Place(str(folder / "p1.png")), Reading(cache=tmp_path / "file" / "cache")
    with pytest.raises(TruepairError, match="TRUEPAIR_CACHE"):
        describe_all(lambda row: place, digests(1, "a"), Windows(), nowhere)


def test_pictures_of_another_set_are_not_described_again(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the pictures first, then all, then another part: each picture is described once."""
    prepare, seen = describing.prepare, list[str]()

    def noted(place: Place, encoder: Encoder) -> Array | Failure:
        seen.append(Path(place.file).stem)
        return prepare(place, encoder)

    monkeypatch.setattr(describing, "prepare", noted)
    part = describe_all(lambda row: Place(str(folder / f"p{row + 5}.png")), digests(9, "key", 5), Windows())
    assert part.rows.tolist() == [0, 1, 4, 5, 6, 7, 8]
    check(describe_folder(folder))
    good = [f"p{row}" for row in range(COUNT) if row not in BAD]
    assert sorted(set(seen) & set(good)) == sorted(name for name in seen if name in good) == sorted(good)
    seen.clear()
    later = describe_all(lambda row: Place(str(folder / f"p{row + 9}.png")), digests(4, "key", 9), Windows())
    assert seen == [] and len(later.rows) == 4
    for path in cache.glob("*.digests.npy"):
        path.write_bytes(path.read_bytes()[:-3])
    describe_all(lambda row: Place(str(folder / f"p{row + 9}.png")), digests(3, "key", 9), Windows())
    assert sorted(seen) == ["p10", "p11", "p9"]
