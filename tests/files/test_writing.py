import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truepair.errors import InputError, TruepairError
from truepair.files import (
    atomic_file,
    link_or_copy,
    map_npy,
    write_bytes_atomically,
    write_json_atomically,
    write_text_atomically,
    writing,
)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_writes_and_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes_atomically(path, b"old")
    write_bytes_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_text_keeps_its_line_ends_and_is_utf8(tmp_path: Path) -> None:
    write_text_atomically(tmp_path / "t", "é\r\nb\n")
    assert (tmp_path / "t").read_bytes() == "é\r\nb\n".encode()


def test_json_round_trip(tmp_path: Path) -> None:
    value = {"wörd": [1, 2.5, None, True], "empty": {}}
    write_json_atomically(tmp_path / "j.json", value)
    text = (tmp_path / "j.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert "wörd" in text
    assert text.endswith("}\n")


def test_json_refuses_nan_before_it_touches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "j.json"
    write_json_atomically(path, 1)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json_atomically(path, float("nan"))
    assert path.read_text() == "1\n"


def test_a_different_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes_atomically(path, b"mine", overwrite=False)
    write_bytes_atomically(path, b"mine", overwrite=False)
    with pytest.raises(InputError, match=r"file exists with other content.*expected a new file.*Choose another path"):
        write_bytes_atomically(path, b"ours", overwrite=False)
    assert path.read_bytes() == b"mine"


def test_a_folder_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match="exists"):
        write_bytes_atomically(tmp_path / "x", b"", overwrite=False)
    with pytest.raises(TruepairError, match=r"x could not be written: .*; "):
        write_bytes_atomically(tmp_path / "x", b"")
    assert names(tmp_path) == ["x"]


def test_missing_folder_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(TruepairError, match=r"nowhere.file could not be written: .*; create the folder first"):
        write_bytes_atomically(tmp_path / "nowhere" / "file", b"")


@pytest.mark.parametrize("step", [(os, "fsync"), (Path, "replace")])
def test_full_disk_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str]
) -> None:
    path = tmp_path / "file"
    write_bytes_atomically(path, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*step, full)
    with pytest.raises(TruepairError, match=r"file could not be written: No space left on device; free space"):
        write_bytes_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="permission bits are POSIX")
def test_the_umask_decides_the_permissions(tmp_path: Path) -> None:
    previous = os.umask(0o022)
    try:
        write_bytes_atomically(tmp_path / "file", b"")
    finally:
        os.umask(previous)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_map_npy_is_read_only_and_lazy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    array = map_npy(tmp_path / "a.npy")
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


HEADER = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%s,), }"


@pytest.mark.parametrize(
    "header", [b"(((", b"{'descr': ", b" \n  a\n b", HEADER % (b"9" * 30), HEADER % b"True", HEADER % b"-1", b"\x00"]
)
def test_map_npy_turns_any_damaged_header_into_one_error(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(118) + bytes(80))
    with pytest.raises(ValueError, match=r"."):
        map_npy(tmp_path / "a.npy")
    with pytest.raises(OSError, match="No such file"):
        map_npy(tmp_path / "none.npy")


def test_a_file_another_library_writes_takes_its_name_last(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"

    def stop_half_way() -> None:
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        stop_half_way()
    with pytest.raises(TruepairError, match="file could not be written"), atomic_file(path) as temporary:
        pass  # nothing was written
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_what_the_system_refuses_is_told_with_the_file_and_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(TruepairError, match=r"x could not be written: No space.*free space"), writing(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_link_that_is_there_already_stays(tmp_path: Path) -> None:
    path, target = tmp_path / "a", tmp_path / "folder" / "b"
    path.write_bytes(b"content")
    for _ in range(2):
        link_or_copy(path, target)
        assert target.read_bytes() == b"content" and target.samefile(path)
