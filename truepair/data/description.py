"""The facts about a data set as `describe` gives them: for programs and for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from truepair.data.collection import Problem
from truepair.phrases import listed, plain, printable

MOST_PROBLEMS = 20


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
        captions_per_image: None where the counts do not fit each other, or no pair can be used.
        label_columns: column -> number of different values, for each column that can serve as label.
        mismatch_rate: share of mismatched pairs, None where the truth is unknown.
        text_features: the same as `images` for the vectors of the texts, None where texts are words.
        class_counts: class -> pairs of it, those of no pair included; empty without labels.
        unseen_classes: classes with pairs here and none in training; None where that is unknown.
        label_noise_rate: share of wrong labels, None where the truth is unknown.
        problems: the first of what keeps the split, or entries of it, from being used; `problem_count` counts all.
        copies: how many times in a row the files hold each image, which then is one image (`data/repeats.py`).
    """

    name: str
    images: ImageStatistics | None
    captions: CaptionStatistics
    captions_per_image: Range | None
    label_columns: dict[str, int] = field(default_factory=dict)
    mismatch_rate: float | None = None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    text_features: ImageStatistics | None = None
    class_counts: dict[str, int] = field(default_factory=dict)
    unseen_classes: tuple[str, ...] | None = None
    label_noise_rate: float | None = None
    copies: int = 1


@dataclass(frozen=True)
class Description:
    """What `describe` found: `to_dict()` for programs (JSON types only), `render()` for people."""

    source: str
    splits: tuple[SplitDescription, ...]

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(asdict(self)))

    def render(self) -> str:
        return printable("\n\n".join([self.source, *(_render(split) for split in self.splits)]) + "\n")


def _render(split: SplitDescription) -> str:
    images, texts = split.images, split.text_features
    rows = [("images", "the features cannot be opened" if images is None else f"{images.count}")]
    if images is not None:
        rows += _array_rows(images, "image")
        if len(images.shape) == 3:
            rows.insert(3, ("all-zero regions", f"{images.zero_regions}"))
    if texts is None:
        rows += _caption_rows(split.captions)
    else:
        rows += [("texts", f"{texts.count}"), *_array_rows(texts, "text")]
    unknown = "the counts do not fit each other" if texts is None else "no pair can be used"
    rows.append(("captions an image", f"{split.captions_per_image or unknown}"))
    if split.copies > 1:
        held = f"the files hold each image {split.copies} times in a row; it is one image with all their captions"
        rows.append(("repeated rows", held))
    if split.label_columns:
        columns = ", ".join(f"{name} ({count})" for name, count in split.label_columns.items())
        rows.append(("label columns", columns))
    if split.class_counts:
        counts = sorted(split.class_counts.items(), key=lambda entry: -entry[1])
        named = listed([f"{name} {count}" for name, count in counts])
        sizes = f"{len(counts)} classes of {counts[-1][1]} to {counts[0][1]} pairs"
        rows.append(("pairs a class", f"{sizes}: {named}"))
    if split.unseen_classes:
        rows.append(("not in training", f"{listed(split.unseen_classes)} (can be retrieved, but not learned)"))
    if split.label_noise_rate is not None:
        rows.append(("wrong labels", f"{split.label_noise_rate:.1%}"))
    if split.mismatch_rate is not None:
        rows.append(("mismatched pairs", f"{split.mismatch_rate:.1%}"))
    lines = [split.name, *(f"  {name:<20}{value}" for name, value in rows)]
    if split.problem_count:
        lines.append(f"  problems: {split.problem_count}")
        lines += [f"    {problem}" for problem in split.problems]
        if split.problem_count > len(split.problems):
            lines.append(f"    and {split.problem_count - len(split.problems)} more")
    return "\n".join(lines)


def _array_rows(items: ImageStatistics, item: str) -> list[tuple[str, str]]:
    repeated = f"{items.repeated}"
    if items.repeated_example:
        first, later = items.repeated_example
        repeated += f" ({item} {later} is {item} {first} again, from 0)"
    return [
        ("features", f"{items.shape} {items.dtype}, {items.bytes / 2**20:.1f} MiB"),
        (f"all-zero {item}s", f"{items.zero_images}"),
        (f"repeated {item}s", repeated),
        ("NaN or infinite", f"{items.not_finite}"),
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
