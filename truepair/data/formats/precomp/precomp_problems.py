"""What keeps a split of a "precomp" folder from being used: file, row, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truepair.data.collection import Problem
from truepair.data.formats.precomp.precomp_files import PrecompSplit, all_meta, chunks, column, files_of, listing
from truepair.data.formats.tables.drafts import LONGEST_CAPTION


def find_problems(contents: PrecompSplit, *, label: str | None = None) -> Iterator[Problem]:
    """Everything that keeps `load_precomp` from using the split; the slow look at all feature values comes last."""
    yield from _features_problems(contents)
    yield from _captions_problems(contents)
    if contents.id_lines is not None:
        yield from _ids_problems(contents, contents.id_lines)
    if contents.meta_lines is not None:
        yield from _meta_problems(contents, contents.meta_lines)
    if label is not None:
        yield from _label_problems(contents, label)
    yield from _values_problems(contents)


def _problem(file: Path, row: int | None, reason: str, detail: str) -> Problem:
    """`row` counts lines from 1 in text files and images from 0 in arrays; None means the file as a whole."""
    if row is None:
        return Problem(file.name, file.name, -1, reason, detail)
    array = file.suffix == ".npy"
    entry = f"image {row} (from 0)" if array else f"line {row}"
    return Problem(entry, file.name, row if array else row - 1, reason, detail)


def _features_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, features = contents.features_file, contents.features
    if not file.is_file():
        yield _missing(contents, file, "the features of the images")
    elif features is None:
        remedy = "Copy or download the file again, or write it with np.save(path, features), features of float32"
        yield _problem(
            file, None, "broken-array", f"it is not a plain .npy array ({contents.features_error}). {remedy}"
        )
    elif features.ndim not in (2, 3) or 0 in features.shape:
        expected = "expected (images, regions, width) or (images, width), none of them 0"
        remedy = "Write it again with one row for each image"
        yield _problem(file, None, "wrong-shape", f"its shape is {features.shape}; {expected}. {remedy}")
    elif features.dtype not in (np.float16, np.float32):
        remedy = f'Convert it: import numpy as np; p = "{file}"; np.save(p, np.load(p).astype(np.float32))'
        yield _problem(file, None, "wrong-type", f"its type is {features.dtype}; expected float16 or float32. {remedy}")


def _captions_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines, images = contents.captions_file, contents.caption_lines, contents.image_count
    if lines is None:
        yield _missing(contents, file, "the captions")
        return
    if not lines:
        detail = "it is empty; expected one caption a line. Copy or download the file again"
        yield _problem(file, None, "empty-file", detail)
    yield from _undecodable(file, lines)
    if file.suffix == ".tsv":
        yield from _wrong_columns(
            file, lines, 1, 2, "expected 2: id TAB caption. Put exactly one tab between id and caption"
        )
    for row, (line, caption) in enumerate(zip(lines, contents.captions, strict=True), start=1):
        if len(caption) > LONGEST_CAPTION:
            found = f"the caption has {len(caption):,} characters; expected at most {LONGEST_CAPTION:,}"
            remedy = "Check that no whole document stands in its place, and shorten it"
            yield _problem(file, row, "long-caption", f"{found}. {remedy}")
        if not caption and (file.suffix == ".txt" or "\t" in line):
            remedy = "Write the caption, or remove the line together with its image"
            yield _problem(file, row, "empty-caption", f"the caption is empty; expected at least one word. {remedy}")
    if images and lines and contents.captions_per_image is None:
        found = f"it has {len(lines)} captions for the {images} images of {contents.features_file.name}"
        remedy = "Check that both files belong together and that no line got lost or was broken in two"
        detail = f"{found}; expected the same number for each image (such as 1 or 5). {remedy}"
        yield _problem(file, None, "wrong-count", detail)


def _ids_problems(contents: PrecompSplit, lines: list[str]) -> Iterator[Problem]:
    file = contents.ids_file
    yield from _undecodable(file, lines)
    yield from _not_one_each(contents, file, len(lines))
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            detail = "the name is empty. Write a name, or remove the file: it is optional"
            yield _problem(file, row, "empty-name", detail)


def _meta_problems(contents: PrecompSplit, lines: list[str]) -> Iterator[Problem]:
    file = contents.meta_file
    if not lines:
        detail = "it is empty; expected a header line. Remove it (it is optional) or write it again"
        yield _problem(file, None, "empty-file", detail)
        return
    yield from _undecodable(file, lines)
    yield from _not_one_each(contents, file, len(lines) - 1)
    expected = len(lines[0].split("\t"))
    remedy = "Separate the columns by single tabs and put no tab into a value"
    yield from _wrong_columns(file, lines[1:], 2, expected, f"the header has {expected}. {remedy}")


def _label_problems(contents: PrecompSplit, label: str) -> Iterator[Problem]:
    if contents.meta_lines is None:
        yield _missing(contents, contents.meta_file, f"the label column {label!r}")
    for file, lines in all_meta(contents):
        if file != contents.meta_file:
            yield from _undecodable(file, lines)
        header = lines[0].split("\t") if lines else []
        if label not in header:
            found = f"it has no column {label!r}; its columns are {', '.join(header) or 'none'}"
            remedy = "Choose one of these columns. Each split's meta file needs it, so that all agree on the classes"
            yield _problem(file, None, "no-column", f"{found}. {remedy}")
            continue
        for row, name in enumerate(column(lines, label), start=2):
            if not name:
                detail = f"the column {label!r} is empty. Fill in the class of this row"
                yield _problem(file, row, "empty-label", detail)


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
            found = f"{place} holds {rows[offset][~finite[offset]][0]}; expected finite numbers"
            remedy = "Extract the features of this image again, or remove the image with its captions"
            yield _problem(contents.features_file, start + int(offset), "nan-row", f"{found}. {remedy}")


def _missing(contents: PrecompSplit, file: Path, what: str) -> Problem:
    found = f"the file is missing; expected {what} of split {contents.name!r}"
    remedy = f"The folder holds {listing(files_of(contents.folder))}: copy the file there or choose another split"
    return _problem(file, None, "missing-file", f"{found}. {remedy}")


def _undecodable(file: Path, lines: list[str]) -> Iterator[Problem]:
    remedy = "Save the file as UTF-8, for example: iconv -f WINDOWS-1252 -t UTF-8 old > new"
    for row, line in enumerate(lines, start=1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) - 0xDC00  # surrogateescape keeps byte b as U+DC00 + b
            found = f"byte 0x{byte:02x} at character {error.start + 1} is not UTF-8"
            yield _problem(file, row, "not-utf8", f"{found}. {remedy}")


def _wrong_columns(file: Path, lines: list[str], first: int, columns: int, expected: str) -> Iterator[Problem]:
    """Lines of another number of columns; `first` is the number of the first line."""
    for row, line in enumerate(lines, start=first):
        found = line.count("\t") + 1
        if found != columns:
            shown = repr(line if len(line) <= 60 else line[:57] + "...")
            yield _problem(file, row, "wrong-columns", f"the line has {found} columns ({shown}); {expected}")


def _not_one_each(contents: PrecompSplit, file: Path, found: int) -> Iterator[Problem]:
    """A problem if `file` has neither one row an image nor one a caption; silent while the counts are unknown."""
    images, captions = contents.image_count, len(contents.caption_lines or [])
    if images and captions and found not in (images, captions):
        expected = f"expected {images} (one an image) or {captions} (one a caption)"
        remedy = "Check that it belongs to this split, or remove it: it is optional"
        yield _problem(file, None, "wrong-count", f"it has {found} rows; {expected}. {remedy}")
