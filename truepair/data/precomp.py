"""The field's "precomp" layout: one folder, for each split an array of region features and a file of captions.

For a split such as "train" the folder holds

- `train_ims.npy`: (n, R, D) or (n, D), float16 or float32;
- `train_caps.txt`, one caption a line, or `train_caps.tsv`, id TAB caption (CC152K; `.txt` wins where both exist);
- optionally `train_ids.txt`, one name a line for each image or for each caption;
- optionally `train_meta.tsv`, a header line, then one row for each image or for each caption.

Caption c belongs to image c // k, where k is the number of captions divided by the number of images. Text is
UTF-8, with or without a byte order mark, with Unix or Windows line ends; quotes in `.tsv` have no special meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truepair.data.pairs import Array, Images, IntArray, Pairs, Texts
from truepair.errors import InputError
from truepair.files import map_npy

# Two names for one thing: releases differ in what they call these splits.
_OTHER_NAME = {"dev": "val", "val": "dev", "test": "testall"}

_CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Problem:
    """Something that keeps a file from being used, and what to do about it.

    `row` counts lines from 1 in text files and images from 0 in arrays; None means the file as a whole.
    """

    file: Path
    row: int | None
    what: str
    remedy: str

    def __str__(self) -> str:
        place = str(self.file)
        if self.row is not None:
            place += f", image {self.row} (from 0)" if self.file.suffix == ".npy" else f", line {self.row}"
        return f"{place}: {self.what}. {self.remedy}"


@dataclass(frozen=True)
class PrecompSplit:
    """The files of one split, read but not judged. What is missing or cannot be opened is None.

    `features_error` tells why features that are there cannot be opened. Bytes that are not UTF-8 stand in the text as
    lone surrogates, so that reading never fails.
    """

    folder: Path
    name: str
    features_file: Path
    features: Array | None
    features_error: str
    captions_file: Path
    caption_lines: list[str] | None
    ids_file: Path
    id_lines: list[str] | None
    meta_file: Path
    meta_lines: list[str] | None

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


def available_splits(folder: Path | str, *, complete: bool = True) -> tuple[str, ...]:
    """The names of the splits with both features and captions (`complete`) or with either, in alphabetical order.

    Raises:
        InputError: `folder` is not a folder.
    """
    names = _files_of(Path(folder))
    with_features = {name.removesuffix("_ims.npy") for name in names if name.endswith("_ims.npy")}
    with_captions = {name.rpartition("_caps.")[0] for name in names if name.endswith(("_caps.txt", "_caps.tsv"))}
    return tuple(sorted(with_features & with_captions if complete else with_features | with_captions))


def load_precomp(folder: Path | str, split: str, *, label: str | None = None) -> Pairs:
    """The pairs of one split; features stay on disk (memory-mapped) and are checked once, all captions are read.

    Where the folder has no file of `split`, "dev" and "val" stand for each other and "test" for "testall".
    `label` names a column of the meta file: it becomes `labels`, numbered by the sorted names found in that column
    in all splits of the folder, so that a number means the same class in each of them.
    Names: images take theirs from the ids file, else their row number; captions take theirs from the `.tsv`, else
    from an ids file with one name a caption, else the image's name, with "#k" if an image has several captions.

    Raises:
        InputError: the folder or split is missing, or a file has a problem; the first is told, the others counted.
    """
    contents = read_split(folder, split)
    problems = find_problems(contents, label=label)
    first = next(problems, None)
    if first is not None:
        more = sum(1 for _ in problems)
        others = f" (and {more} more problems: truepair.data.describe lists them)" if more else ""
        raise InputError(f"{first}{others}")
    per_image = contents.captions_per_image
    # A split without problems has both; this tells the type checker.
    assert contents.features is not None
    assert per_image is not None
    captions = contents.captions
    image_index = np.repeat(np.arange(len(contents.features), dtype=np.int64), per_image)
    image_ids, text_ids = _names(contents, len(contents.features), per_image)
    labels, class_names = (None, ()) if label is None else _labels(contents, label, image_index)
    return Pairs(
        images=Images(contents.features, image_ids),
        texts=Texts(tuple(captions), text_ids),
        image_index=image_index,
        text_index=np.arange(len(captions), dtype=np.int64),
        labels=labels,
        class_names=class_names,
        name=f"{contents.folder.name}/{contents.name}",
    )


def read_split(folder: Path | str, split: str) -> PrecompSplit:
    """The files of one split as they are; see `load_precomp` for split names that stand for each other.

    Raises:
        InputError: `folder` is not a folder or has neither features nor captions of the split, or a text file may not
            be read.
    """
    folder = Path(folder).resolve()
    names = _files_of(folder)

    splits = available_splits(folder, complete=False)
    name = split if split in splits else _OTHER_NAME.get(split, split)
    if name not in splits:
        raise InputError(
            f"{folder} has no split {split!r}; expected {split}_ims.npy and {split}_caps.txt (or .tsv). "
            f"It holds {_listing(names)}. Choose one of its splits ({', '.join(splits) or 'it has none'})"
        )
    has_tsv_only = f"{name}_caps.tsv" in names and f"{name}_caps.txt" not in names
    captions_file = folder / f"{name}_caps.{'tsv' if has_tsv_only else 'txt'}"
    features_file, ids_file, meta_file = (folder / f"{name}_{end}" for end in ("ims.npy", "ids.txt", "meta.tsv"))
    features, features_error = _map_features(features_file)
    return PrecompSplit(
        folder=folder,
        name=name,
        features_file=features_file,
        features=features,
        features_error=features_error,
        captions_file=captions_file,
        caption_lines=_read_lines(captions_file),
        ids_file=ids_file,
        id_lines=_read_lines(ids_file),
        meta_file=meta_file,
        meta_lines=_read_lines(meta_file),
    )


def find_problems(contents: PrecompSplit, *, label: str | None = None) -> Iterator[Problem]:
    """Everything that keeps `load_precomp` from using the split; the slow look at all feature values comes last."""
    yield from _features_problems(contents)
    yield from _captions_problems(contents)
    yield from _counts_problems(contents)
    yield from _ids_problems(contents)
    yield from _meta_problems(contents)
    if label is not None:
        yield from _label_problems(contents, label)
    yield from _values_problems(contents)


def chunks(features: Array) -> Iterator[tuple[int, Array]]:
    """(first row, rows) over an array in pieces of at most 16 MiB (one row at least)."""
    rows = max(1, _CHUNK_BYTES // max(1, features[:1].nbytes))
    for start in range(0, len(features), rows):
        yield start, np.asarray(features[start : start + rows])


# ---- reading ----


def _files_of(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir() if path.is_file()}
    except OSError as error:
        raise InputError(
            f"{folder} is not a folder that can be read ({error.strerror or error}); expected a precomp folder with "
            "files such as train_ims.npy and train_caps.txt. Check the path"
        ) from error


def _listing(names: set[str]) -> str:
    shown = sorted(name for name in names if not name.startswith("."))
    return ", ".join(shown[:12]) + (f" and {len(shown) - 12} more" if len(shown) > 12 else "") or "no files"


def _map_features(path: Path) -> tuple[Array | None, str]:
    """The memory-mapped array, or None and why it cannot be had."""
    try:
        return map_npy(path), ""
    except OSError as error:
        return None, error.strerror or str(error)
    except ValueError as error:
        return None, str(error)


def _read_lines(path: Path) -> list[str] | None:
    """The lines of a text file, or None if there is none; the newline at the end of the last line starts no new one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}). Check its permissions") from error
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="surrogateescape")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


# ---- judging ----


def _features_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, features = contents.features_file, contents.features
    if not file.is_file():
        yield _missing(contents, file, "the features of the images")
    elif features is None:
        yield Problem(
            file, None, f"it is not a plain .npy array ({contents.features_error})",
            "Copy or download the file again, or write it with np.save(path, features), features of float32",
        )  # fmt: skip
    elif features.ndim not in (2, 3) or 0 in features.shape:
        yield Problem(
            file, None,
            f"its shape is {features.shape}; expected (images, regions, width) or (images, width), none of them 0",
            "Write it again with one row for each image",
        )  # fmt: skip
    elif features.dtype not in (np.float16, np.float32):
        yield Problem(
            file, None, f"its type is {features.dtype}; expected float16 or float32",
            f'Convert it: import numpy as np; p = "{file}"; np.save(p, np.load(p).astype(np.float32))',
        )  # fmt: skip


def _captions_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines = contents.captions_file, contents.caption_lines
    if lines is None:
        yield _missing(contents, file, "the captions")
        return
    if not lines:
        yield Problem(file, None, "it is empty; expected one caption a line", "Copy or download the file again")
    yield from _undecodable(file, lines)
    if file.suffix == ".tsv":
        for row, line in enumerate(lines, start=1):
            columns = line.split("\t")
            if len(columns) != 2:
                yield Problem(
                    file, row, f"the line has {len(columns)} columns ({_shorten(line)}); expected 2: id TAB caption",
                    "Put exactly one tab between id and caption",
                )  # fmt: skip
    for row, (line, caption) in enumerate(zip(lines, contents.captions, strict=True), start=1):
        if not caption and (file.suffix == ".txt" or "\t" in line):
            yield Problem(
                file, row, "the caption is empty; expected at least one word",
                "Write the caption, or remove the line together with its image",
            )  # fmt: skip


def _counts_problems(contents: PrecompSplit) -> Iterator[Problem]:
    if contents.image_count and contents.caption_lines and contents.captions_per_image is None:
        yield Problem(
            contents.captions_file, None,
            f"it has {len(contents.caption_lines)} captions for the {contents.image_count} images of "
            f"{contents.features_file.name}; expected the same number for each image (such as 1 or 5)",
            "Check that both files belong together and that no line got lost or was broken in two",
        )  # fmt: skip


def _ids_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines = contents.ids_file, contents.id_lines
    if lines is None:
        return
    yield from _undecodable(file, lines)
    yield from _not_one_each(contents, file, len(lines))
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            yield Problem(file, row, "the name is empty", "Write a name, or remove the file: it is optional")


def _meta_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines = contents.meta_file, contents.meta_lines
    if lines is None:
        return
    if not lines:
        yield Problem(file, None, "it is empty; expected a header line", "Remove it (it is optional) or write it again")
        return
    yield from _undecodable(file, lines)
    yield from _not_one_each(contents, file, len(lines) - 1)
    expected = len(lines[0].split("\t"))
    for row, line in enumerate(lines[1:], start=2):
        columns = line.split("\t")
        if len(columns) != expected:
            yield Problem(
                file, row, f"the line has {len(columns)} columns ({_shorten(line)}); the header has {expected}",
                "Separate the columns by single tabs and put no tab into a value",
            )  # fmt: skip


def _label_problems(contents: PrecompSplit, label: str) -> Iterator[Problem]:
    if contents.meta_lines is None:
        yield _missing(contents, contents.meta_file, f"the label column {label!r}")
    for file, lines in _all_meta(contents):
        if file != contents.meta_file:
            yield from _undecodable(file, lines)
        header = lines[0].split("\t") if lines else []
        if label not in header:
            yield Problem(
                file, None, f"it has no column {label!r}; its columns are {', '.join(header) or 'none'}",
                "Choose one of these columns. Each split's meta file needs it, so that all agree on the classes",
            )  # fmt: skip
            continue
        for row, name in enumerate(_column(lines, label), start=2):
            if not name:
                yield Problem(file, row, f"the column {label!r} is empty", "Fill in the class of this row")


def _values_problems(contents: PrecompSplit) -> Iterator[Problem]:
    features = contents.features
    if features is None or features.dtype.kind != "f" or features.ndim not in (2, 3):
        return
    for start, rows in chunks(features):
        finite = np.asarray(np.isfinite(rows))
        if finite.all():
            continue
        bad = np.asarray(~finite.all(axis=-1))
        for offset in np.flatnonzero(bad.reshape(len(rows), -1).any(axis=1)):
            place = f"region {np.flatnonzero(bad[offset])[0]} (from 0)" if features.ndim == 3 else "its vector"
            value = rows[offset][~finite[offset]][0]
            yield Problem(
                contents.features_file, start + int(offset), f"{place} holds {value}; expected finite numbers",
                "Extract the features of this image again, or remove the image with its captions",
            )  # fmt: skip


def _missing(contents: PrecompSplit, file: Path, what: str) -> Problem:
    return Problem(
        file, None, f"the file is missing; expected {what} of split {contents.name!r}",
        f"The folder holds {_listing(_files_of(contents.folder))}: copy the file there or choose another split",
    )  # fmt: skip


def _undecodable(file: Path, lines: list[str]) -> Iterator[Problem]:
    for row, line in enumerate(lines, start=1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) - 0xDC00  # surrogateescape keeps byte b as U+DC00 + b
            yield Problem(
                file, row, f"byte 0x{byte:02x} at character {error.start + 1} is not UTF-8",
                "Save the file as UTF-8, for example: iconv -f WINDOWS-1252 -t UTF-8 old > new",
            )  # fmt: skip


def _not_one_each(contents: PrecompSplit, file: Path, found: int) -> Iterator[Problem]:
    """A problem if `file` has neither one row an image nor one a caption; silent while the counts are unknown."""
    images, captions = contents.image_count, len(contents.caption_lines or [])
    if images and captions and found not in (images, captions):
        yield Problem(
            file, None, f"it has {found} rows; expected {images} (one an image) or {captions} (one a caption)",
            "Check that it belongs to this split, or remove it: it is optional",
        )  # fmt: skip


def _shorten(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")


# ---- names and labels ----


def _names(contents: PrecompSplit, images: int, per_image: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the images and those of the captions."""
    lines = [line.strip() for line in contents.id_lines or []]
    own_texts: list[str] | None = None
    if contents.captions_file.suffix == ".tsv":
        own_texts = [line.partition("\t")[0].strip() for line in contents.caption_lines or []]
    if len(lines) == images:
        image_ids = lines
    elif lines and all(lines[row] == lines[row - row % per_image] for row in range(len(lines))):
        # One line a caption, but it repeats the image's name.
        image_ids = lines[::per_image]
    else:
        image_ids = [str(row) for row in range(images)]
        if lines:
            own_texts = own_texts or lines
        elif own_texts and per_image == 1:
            image_ids = own_texts
    if own_texts is not None:
        return tuple(image_ids), tuple(own_texts)
    if per_image == 1:
        return tuple(image_ids), tuple(image_ids)
    return tuple(image_ids), tuple(f"{name}#{k}" for name in image_ids for k in range(per_image))


def _labels(contents: PrecompSplit, label: str, image_index: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """The class number of each caption, and the class names."""
    class_names = tuple(sorted({name for _, lines in _all_meta(contents) for name in _column(lines, label)}))
    number = {name: k for k, name in enumerate(class_names)}
    labels = np.array([number[name] for name in _column(contents.meta_lines or [], label)], dtype=np.int64)
    return (labels if len(labels) == len(image_index) else labels[image_index]), class_names


def _all_meta(contents: PrecompSplit) -> Iterator[tuple[Path, list[str]]]:
    for file in sorted(contents.folder.glob("*_meta.tsv")):
        yield file, _read_lines(file) or []


def _column(lines: list[str], label: str) -> list[str]:
    """The values of one column of a meta file; empty where a row is too short."""
    position = lines[0].split("\t").index(label)
    rows = (line.split("\t") for line in lines[1:])
    return [row[position].strip() if position < len(row) else "" for row in rows]
