"""What keeps a split of a "precomp" folder from being used: file, row, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truepair.data.collection import Problem
from truepair.data.formats.precomp.precomp_files import PrecompSplit, all_meta, chunks, column, files_of, listing
from truepair.data.formats.tables.drafts import LONGEST_CAPTION


def _problem(file: Path, row: int | None, reason: str, what: str, remedy: str) -> Problem:
    """`row` counts lines from 1 in text files and images from 0 in arrays; None means the file as a whole."""
    if row is None:
        return Problem(file.name, file.name, -1, reason, f"{what}. {remedy}")
    array = file.suffix == ".npy"
    entry = f"image {row} (from 0)" if array else f"line {row}"
    return Problem(entry, file.name, row if array else row - 1, reason, f"{what}. {remedy}")


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


def _features_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, features = contents.features_file, contents.features
    if not file.is_file():
        yield _missing(contents, file, "the features of the images")
    elif features is None:
        yield _problem(
            file, None, "broken-array", f"it is not a plain .npy array ({contents.features_error})",
            "Copy or download the file again, or write it with np.save(path, features), features of float32",
        )  # fmt: skip
    elif features.ndim not in (2, 3) or 0 in features.shape:
        yield _problem(
            file, None, "wrong-shape",
            f"its shape is {features.shape}; expected (images, regions, width) or (images, width), none of them 0",
            "Write it again with one row for each image",
        )  # fmt: skip
    elif features.dtype not in (np.float16, np.float32):
        yield _problem(
            file, None, "wrong-type", f"its type is {features.dtype}; expected float16 or float32",
            f'Convert it: import numpy as np; p = "{file}"; np.save(p, np.load(p).astype(np.float32))',
        )  # fmt: skip


def _captions_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines = contents.captions_file, contents.caption_lines
    if lines is None:
        yield _missing(contents, file, "the captions")
        return
    if not lines:
        yield _problem(
            file, None, "empty-file", "it is empty; expected one caption a line",
            "Copy or download the file again",
        )  # fmt: skip
    yield from _undecodable(file, lines)
    if file.suffix == ".tsv":
        for row, line in enumerate(lines, start=1):
            columns = line.split("\t")
            if len(columns) != 2:
                yield _problem(
                    file, row, "wrong-columns",
                    f"the line has {len(columns)} columns ({_shorten(line)}); expected 2: id TAB caption",
                    "Put exactly one tab between id and caption",
                )  # fmt: skip
    for row, (line, caption) in enumerate(zip(lines, contents.captions, strict=True), start=1):
        if len(caption) > LONGEST_CAPTION:
            yield _problem(
                file, row, "long-caption",
                f"the caption has {len(caption):,} characters; expected at most {LONGEST_CAPTION:,}",
                "Check that no whole document stands in its place, and shorten it",
            )  # fmt: skip
        if not caption and (file.suffix == ".txt" or "\t" in line):
            yield _problem(
                file, row, "empty-caption", "the caption is empty; expected at least one word",
                "Write the caption, or remove the line together with its image",
            )  # fmt: skip


def _counts_problems(contents: PrecompSplit) -> Iterator[Problem]:
    if contents.image_count and contents.caption_lines and contents.captions_per_image is None:
        yield _problem(
            contents.captions_file, None, "wrong-count",
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
            yield _problem(
                file, row, "empty-name", "the name is empty",
                "Write a name, or remove the file: it is optional",
            )  # fmt: skip


def _meta_problems(contents: PrecompSplit) -> Iterator[Problem]:
    file, lines = contents.meta_file, contents.meta_lines
    if lines is None:
        return
    if not lines:
        yield _problem(
            file, None, "empty-file", "it is empty; expected a header line",
            "Remove it (it is optional) or write it again",
        )  # fmt: skip
        return
    yield from _undecodable(file, lines)
    yield from _not_one_each(contents, file, len(lines) - 1)
    expected = len(lines[0].split("\t"))
    for row, line in enumerate(lines[1:], start=2):
        columns = line.split("\t")
        if len(columns) != expected:
            yield _problem(
                file, row, "wrong-columns",
                f"the line has {len(columns)} columns ({_shorten(line)}); the header has {expected}",
                "Separate the columns by single tabs and put no tab into a value",
            )  # fmt: skip


def _label_problems(contents: PrecompSplit, label: str) -> Iterator[Problem]:
    if contents.meta_lines is None:
        yield _missing(contents, contents.meta_file, f"the label column {label!r}")
    for file, lines in all_meta(contents):
        if file != contents.meta_file:
            yield from _undecodable(file, lines)
        header = lines[0].split("\t") if lines else []
        if label not in header:
            yield _problem(
                file, None, "no-column", f"it has no column {label!r}; its columns are {', '.join(header) or 'none'}",
                "Choose one of these columns. Each split's meta file needs it, so that all agree on the classes",
            )  # fmt: skip
            continue
        for row, name in enumerate(column(lines, label), start=2):
            if not name:
                yield _problem(
                    file, row, "empty-label", f"the column {label!r} is empty",
                    "Fill in the class of this row",
                )  # fmt: skip


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
            yield _problem(
                contents.features_file, start + int(offset), "nan-row",
                f"{place} holds {value}; expected finite numbers",
                "Extract the features of this image again, or remove the image with its captions",
            )  # fmt: skip


def _missing(contents: PrecompSplit, file: Path, what: str) -> Problem:
    return _problem(
        file, None, "missing-file", f"the file is missing; expected {what} of split {contents.name!r}",
        f"The folder holds {listing(files_of(contents.folder))}: copy the file there or choose another split",
    )  # fmt: skip


def _undecodable(file: Path, lines: list[str]) -> Iterator[Problem]:
    for row, line in enumerate(lines, start=1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) - 0xDC00  # surrogateescape keeps byte b as U+DC00 + b
            yield _problem(
                file, row, "not-utf8", f"byte 0x{byte:02x} at character {error.start + 1} is not UTF-8",
                "Save the file as UTF-8, for example: iconv -f WINDOWS-1252 -t UTF-8 old > new",
            )  # fmt: skip


def _not_one_each(contents: PrecompSplit, file: Path, found: int) -> Iterator[Problem]:
    """A problem if `file` has neither one row an image nor one a caption; silent while the counts are unknown."""
    images, captions = contents.image_count, len(contents.caption_lines or [])
    if images and captions and found not in (images, captions):
        yield _problem(
            file, None, "wrong-count",
            f"it has {found} rows; expected {images} (one an image) or {captions} (one a caption)",
            "Check that it belongs to this split, or remove it: it is optional",
        )  # fmt: skip


def _shorten(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
