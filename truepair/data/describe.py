"""What a data set holds and what is wrong with it, without stopping at the first fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Array, Pairs
from truepair.data.precomp_files import PrecompSplit, available_splits, chunks, read_split
from truepair.data.precomp_problems import Problem, find_problems
from truepair.data.sources import is_drawn, load, splits_of
from truepair.data.text import tokenise
from truepair.errors import InputError

_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Range:
    """Smallest, mean and largest of some counts."""

    minimum: int
    mean: float
    maximum: int

    def __str__(self) -> str:
        if self.minimum == self.maximum:
            return f"{self.minimum}"
        return f"{self.mean:.1f} ({self.minimum} to {self.maximum})"


@dataclass(frozen=True)
class ImageStatistics:
    """The image side of a split.

    Attributes:
        count: images.
        shape, dtype, bytes: of the feature array.
        zero_images: images whose features are all zero.
        zero_regions: regions whose features are all zero, those of all-zero images included.
        repeated: images equal, bit by bit, to an earlier one.
        repeated_example: rows (from 0) of one such pair of images.
        not_finite: images with a NaN or an infinite number.
    """

    count: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    zero_images: int
    zero_regions: int
    repeated: int
    repeated_example: tuple[int, int] | None
    not_finite: int


@dataclass(frozen=True)
class CaptionStatistics:
    """The text side of a split.

    Attributes:
        count: captions.
        empty: captions of nothing but spaces.
        words: words per caption; None without captions.
        distinct_words: number of different words, and number of those that occur at least four times.
        repeated: captions equal, letter by letter, to an earlier one; empty ones do not count.
        repeated_example: the most frequent of them and how often it occurs.
    """

    count: int
    empty: int
    words: Range | None
    distinct_words: int
    distinct_words_4: int
    repeated: int
    repeated_example: tuple[str, int] | None


@dataclass(frozen=True)
class SplitDescription:
    """One split, or one `Pairs`.

    Attributes:
        images: None where the features cannot be opened.
        captions_per_image: None where the counts do not fit each other.
        label_columns: column -> number of different values.
        mismatch_rate: share of mismatched pairs, None where the truth is unknown.
        problems: the first of what keeps the split from loading; `problem_count` counts all.
    """

    name: str
    images: ImageStatistics | None
    captions: CaptionStatistics
    captions_per_image: Range | None
    label_columns: dict[str, int]
    mismatch_rate: float | None
    problems: tuple[Problem, ...]
    problem_count: int


@dataclass(frozen=True)
class Description:
    """What `describe` found: `to_dict()` for programs (JSON types only), `render()` for people."""

    source: str
    splits: tuple[SplitDescription, ...]

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def render(self) -> str:
        return _printable("\n\n".join([self.source, *(_render(split) for split in self.splits)]) + "\n")


def describe(source: Path | str | Pairs, *, splits: Sequence[str] | None = None) -> Description:
    """What a source (all its splits, or those named) or a `Pairs` holds. Bad entries are listed, never raised.

    Features are read once for the counts and once for the problems, in pieces of 16 MiB. A `Pairs` is one
    split; its problems are not listed, as it has passed its source's checks, but its counts are.

    Raises:
        InputError: the folder, or a split in it, is missing altogether.
    """
    if isinstance(source, Pairs):
        return Description(source.name, (_describe_pairs(source),))
    if is_drawn(source):
        chosen = splits_of(source) if splits is None else splits
        return Description(str(source), tuple(_describe_pairs(load(source, name)) for name in chosen))
    folder = Path(source)
    names = available_splits(folder, complete=False) if splits is None else splits
    if not names:
        raise InputError(
            f"{folder} holds no split; expected files such as train_ims.npy and train_caps.txt. Check the path"
        )
    return Description(str(folder), tuple(_describe_split(read_split(folder, name)) for name in names))


def _describe_split(contents: PrecompSplit) -> SplitDescription:
    per_image = contents.captions_per_image
    problems = find_problems(contents)
    shown = tuple(islice(problems, _MOST_PROBLEMS))
    return SplitDescription(
        name=contents.name,
        images=_image_statistics(contents.features),
        captions=_caption_statistics(contents.captions),
        captions_per_image=None if per_image is None else Range(per_image, per_image, per_image),
        label_columns=_label_columns(contents.meta_lines or []),
        mismatch_rate=None,
        problems=shown,
        problem_count=len(shown) + sum(1 for _ in problems),
    )


def _describe_pairs(pairs: Pairs) -> SplitDescription:
    return SplitDescription(
        name=pairs.name,
        images=_image_statistics(pairs.images.features),
        captions=_caption_statistics(pairs.texts.captions),
        captions_per_image=_range(np.bincount(pairs.image_index, minlength=len(pairs.images)).tolist()),
        label_columns={} if pairs.labels is None else {"labels": len(np.unique(pairs.labels))},
        mismatch_rate=pairs.mismatch_rate,
        problems=(),
        problem_count=0,
    )


def _image_statistics(features: Array | None) -> ImageStatistics | None:
    if features is None:
        return None
    zero_images = zero_regions = repeated = not_finite = 0
    example: tuple[int, int] | None = None
    seen: dict[bytes, int] = {}
    # Other types and shapes are a problem of their own and have no images to count.
    countable = features.dtype.kind in "fiu" and features.ndim in (2, 3)
    for start, rows in chunks(features) if countable else ():
        regions = rows.reshape(len(rows), -1, rows.shape[-1])
        zero = np.asarray(~regions.any(axis=2))
        zero_regions += int(zero.sum())
        zero_images += int(zero.all(axis=1).sum())
        not_finite += int((~np.isfinite(regions).all(axis=(1, 2))).sum())
        for row, image in enumerate(np.ascontiguousarray(rows), start=start):
            first = seen.setdefault(blake2b(image, digest_size=16).digest(), row)
            if first != row:
                repeated += 1
                example = example or (first, row)
    return ImageStatistics(
        count=len(features) if features.shape else 0,
        shape=features.shape,
        dtype=str(features.dtype),
        bytes=features.nbytes,
        zero_images=zero_images,
        zero_regions=zero_regions,
        repeated=repeated,
        repeated_example=example,
        not_finite=not_finite,
    )


def _caption_statistics(captions: Sequence[str]) -> CaptionStatistics:
    words: Counter[str] = Counter()
    lengths = []
    for caption in captions:
        found = tokenise(caption)
        words.update(found)
        lengths.append(len(found))
    uses = Counter(caption for caption in captions if caption.strip())
    most = uses.most_common(1)
    return CaptionStatistics(
        count=len(captions),
        empty=sum(not caption.strip() for caption in captions),
        words=_range(lengths),
        distinct_words=len(words),
        distinct_words_4=sum(count >= 4 for count in words.values()),
        repeated=uses.total() - len(uses),
        repeated_example=most[0] if most and most[0][1] > 1 else None,
    )


def _label_columns(meta_lines: list[str]) -> dict[str, int]:
    table = [line.split("\t") for line in meta_lines]
    header = table[0] if table else []
    return {name: len({row[k] for row in table[1:] if k < len(row)}) for k, name in enumerate(header)}


def _range(counts: Sequence[int]) -> Range | None:
    return Range(min(counts), sum(counts) / len(counts), max(counts)) if counts else None


def _plain(value: Any) -> Any:
    """The same with paths as strings and tuples as lists: what JSON knows."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _printable(str(value)) if isinstance(value, Path | str) else value


def _printable(text: str) -> str:
    """Bytes that were not UTF-8 become a visible question mark; they can be neither printed nor written."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _render(split: SplitDescription) -> str:
    rows = [*_image_rows(split.images), *_caption_rows(split.captions)]
    per_image = "the counts do not fit each other" if split.captions_per_image is None else split.captions_per_image
    rows.append(("captions an image", f"{per_image}"))
    if split.label_columns:
        columns = ", ".join(f"{name} ({count})" for name, count in split.label_columns.items())
        rows.append(("label columns", f"{columns}"))
    if split.mismatch_rate is not None:
        rows.append(("mismatched pairs", f"{split.mismatch_rate:.1%}"))
    lines = [split.name, *(f"  {name:<20}{value}" for name, value in rows)]
    if split.problem_count:
        lines.append(f"  problems: {split.problem_count}")
        lines += [f"    {problem}" for problem in split.problems]
        if split.problem_count > len(split.problems):
            lines.append(f"    and {split.problem_count - len(split.problems)} more")
    return "\n".join(lines)


def _image_rows(images: ImageStatistics | None) -> list[tuple[str, str]]:
    if images is None:
        return [("images", "the features cannot be opened")]
    repeated = f"{images.repeated}"
    if images.repeated_example:
        first, later = images.repeated_example
        repeated += f" (image {later} is image {first} again, from 0)"
    return [
        ("images", f"{images.count}"),
        ("features", f"{images.shape} {images.dtype}, {images.bytes / 2**20:.1f} MiB"),
        ("all-zero images", f"{images.zero_images}"),
        ("all-zero regions", f"{images.zero_regions}"),
        ("repeated images", repeated),
        ("NaN or infinite", f"{images.not_finite}"),
    ]


def _caption_rows(captions: CaptionStatistics) -> list[tuple[str, str]]:
    repeated = f"{captions.repeated}"
    if captions.repeated_example:
        caption, uses = captions.repeated_example
        repeated += f" ({caption!r} occurs {uses} times)"
    return [
        ("captions", f"{captions.count}"),
        ("words a caption", f"{captions.words or '-'}"),
        ("different words", f"{captions.distinct_words}, {captions.distinct_words_4} of them at least 4 times"),
        ("repeated captions", repeated),
        ("empty captions", f"{captions.empty}"),
    ]
