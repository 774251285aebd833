"""Reading the files of one split of a "precomp" folder as they are, without checking them (layout: `precomp.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truepair.data.pairs import Array
from truepair.data.repeats import copies
from truepair.data.splits import named
from truepair.errors import InputError
from truepair.files import map_npy, read_file
from truepair.phrases import listed

_CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class PrecompSplit:
    """The files of one split, read but not checked. What is missing or cannot be opened is None.

    `features_error` tells why features that are there cannot be opened. Bytes that are not UTF-8 stand in the text as
    lone surrogates, so that reading never fails.
    """

    folder: Path
    name: str
    features: Array | None
    features_error: str
    captions_file: Path
    caption_lines: list[str] | None
    id_lines: list[str] | None
    meta_lines: list[str] | None

    @property
    def features_file(self) -> Path:
        return self.folder / f"{self.name}_ims.npy"

    @property
    def ids_file(self) -> Path:
        return self.folder / f"{self.name}_ids.txt"

    @property
    def meta_file(self) -> Path:
        return self.folder / f"{self.name}_meta.tsv"

    @property
    def captions(self) -> list[str]:
        """The caption of each line without surrounding spaces; empty where a line has none."""
        if self.captions_file.suffix == ".tsv":
            return [line.partition("\t")[2].strip() for line in self.caption_lines or []]
        return [line.strip() for line in self.caption_lines or []]

    @property
    def image_count(self) -> int | None:
        """Images (>= 1), or None where the features cannot be opened or have no rows."""
        return None if self.features is None or 0 in (self.features.ndim, self.features.size) else len(self.features)

    @property
    def captions_per_image(self) -> int | None:
        """Captions of each image (>= 1), or None where the counts do not fit each other."""
        images, captions = self.image_count, len(self.caption_lines or [])
        return captions // images if images and captions and captions % images == 0 else None


def available_splits(folder: Path | str) -> tuple[str, ...]:
    """The names of the splits with features or captions, in alphabetical order."""
    matches = (re.fullmatch(r"(.*)_(ims\.npy|caps\.txt|caps\.tsv)", name, re.DOTALL) for name in files_of(Path(folder)))
    return tuple(sorted({match[1] for match in matches if match}))


def read_split(folder: Path | str, split: str) -> PrecompSplit:
    """The files of one split as they are; see `load_precomp` for split names that stand for each other."""
    folder = Path(folder).resolve()
    names = files_of(folder)

    splits = available_splits(folder)
    name = next(iter(named(split, splits)), "")
    if not name:
        raise InputError(
            f"{folder} has no split {split!r}; expected {split}_ims.npy and {split}_caps.txt (or .tsv). "
            f"It holds {listing(names)}. Choose one of its splits ({', '.join(splits) or 'it has none'})"
        )
    has_tsv_only = f"{name}_caps.tsv" in names and f"{name}_caps.txt" not in names
    captions_file = folder / f"{name}_caps.{'tsv' if has_tsv_only else 'txt'}"
    texts = (_read_lines(file) for file in (captions_file, folder / f"{name}_ids.txt", folder / f"{name}_meta.tsv"))
    return PrecompSplit(folder, name, *_map_features(folder / f"{name}_ims.npy"), captions_file, *texts)


def copies_in(contents: PrecompSplit) -> int:
    """How many times in a row the array of a usable split holds each image, by its rows or by the ids file."""
    assert contents.features is not None
    names = [line.strip() for line in contents.id_lines or []]
    return copies(contents.features, names if len(names) == len(contents.features) else None)


def chunks(features: Array) -> Iterator[tuple[int, Array]]:
    """(first row, rows) over an array in pieces of at most 16 MiB (one row at least)."""
    rows = max(1, _CHUNK_BYTES // max(1, features[:1].nbytes))
    for start in range(0, len(features), rows):
        yield start, np.asarray(features[start : start + rows])


def all_meta(contents: PrecompSplit) -> Iterator[tuple[Path, list[str]]]:
    for file in sorted(contents.folder.glob("*_meta.tsv")):
        yield file, _read_lines(file) or []


def column(lines: list[str], label: str) -> list[str]:
    """The values of one column of a meta file; empty where a row is too short."""
    position = lines[0].split("\t").index(label)
    rows = (line.split("\t") for line in lines[1:])
    return [row[position].strip() if position < len(row) else "" for row in rows]


def files_of(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir() if path.is_file()}
    except OSError as error:
        raise InputError(
            f"{folder} is not a folder that can be read ({error.strerror or error}); expected a precomp folder with "
            "files such as train_ims.npy and train_caps.txt. Check the path"
        ) from error


def listing(names: set[str]) -> str:
    shown = sorted(name for name in names if not name.startswith("."))
    return listed(shown) or "no files"


def _map_features(path: Path) -> tuple[Array | None, str]:
    """The memory-mapped array, or None and why it cannot be had."""
    try:
        return map_npy(path), ""
    except (OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or str(error)


def count_lines(path: Path) -> int:
    """The lines of a text file, as reading it gives them.

    Raises:
        OSError: it cannot be read.
    """
    data = read_file(path)
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))


def _read_lines(path: Path) -> list[str] | None:
    """The lines of a text file, or None if there is none; the newline at the end of the last line starts no new one."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}). Check its permissions") from error
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="surrogateescape")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines
