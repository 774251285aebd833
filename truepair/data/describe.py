"""What a data set holds and what is wrong with it, without stopping at the first fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np

from truepair.data.description import CaptionStatistics, Description, ImageStatistics, Range, SplitDescription
from truepair.data.formats.precomp.precomp_files import PrecompSplit, available_splits, chunks, column, read_split
from truepair.data.formats.precomp.precomp_problems import find_problems
from truepair.data.formats.tables.picture_table import is_picture_table, label_columns, read_table
from truepair.data.open import has_own_labels, is_drawn, load, splits_of
from truepair.data.pairs import Array, Pairs
from truepair.data.text import tokenise
from truepair.errors import InputError

__all__ = ["CaptionStatistics", "Description", "ImageStatistics", "Range", "SplitDescription", "describe"]

_MOST_PROBLEMS = 20


def describe(
    source: Path | str | Pairs, *, splits: Sequence[str] | None = None, label: str | None = None
) -> Description:
    """What a source (all its splits, or those named) or a `Pairs` holds. Bad entries are listed, never raised.

    In the precomp layout, features are read once for the counts and once for the problems, in pieces of 16 MiB. Files
    of labelled features and tables of pictures are checked as a whole when read: there the first fault is raised. A
    `Pairs` is one split; its problems are not listed, as it has passed its source's checks, but its counts are.

    Args:
        label: column whose classes are counted; sources of labelled features have theirs anyway.

    Raises:
        InputError: the folder, or a split in it, is missing altogether; or as `load` for sources that are not precomp.
    """
    if isinstance(source, Pairs):
        return Description(source.name, (_describe_pairs(source),))
    if is_drawn(source) or has_own_labels(source) or is_picture_table(Path(source)):
        names = splits_of(source) if splits is None else tuple(splits)
        found = tuple(_describe_pairs(load(source, name, label=label)) for name in names)
        if not is_drawn(source) and not has_own_labels(source):
            columns = label_columns(read_table(Path(source).resolve()))
            found = tuple(replace(split, label_columns=columns) for split in found)
        return Description(str(source), _with_unseen_classes(found))
    folder = Path(source)
    names = available_splits(folder, complete=False) if splits is None else tuple(splits)
    if not names:
        raise InputError(
            f"{folder} holds no split; expected files such as train_ims.npy and train_caps.txt. Check the path"
        )
    found = tuple(_describe_split(read_split(folder, name), label) for name in names)
    return Description(str(folder), _with_unseen_classes(found))


def _with_unseen_classes(splits: tuple[SplitDescription, ...]) -> tuple[SplitDescription, ...]:
    """The same, each told which of its classes the training split lacks, where that is among them."""
    train = next((split for split in splits if split.name.rpartition("/")[2] == "train"), None)
    if train is None or not train.class_counts:
        return splits
    learned = {name for name, count in train.class_counts.items() if count}
    return tuple(
        replace(
            split,
            unseen_classes=tuple(name for name, count in split.class_counts.items() if count and name not in learned),
        )
        for split in splits
    )


def _describe_split(contents: PrecompSplit, label: str | None) -> SplitDescription:
    per_image = contents.captions_per_image
    problems = find_problems(contents, label=label)
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
        class_counts=_class_counts(contents.meta_lines or [], label),
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
        text_features=_image_statistics(pairs.texts.features),
        class_counts=_counts_of(pairs),
        label_noise_rate=pairs.label_noise_rate,
    )


def _image_statistics(features: Array | None) -> ImageStatistics | None:
    if features is None:
        return None
    zero_images = zero_regions = repeated = not_finite = 0
    example: tuple[int, int] | None = None
    seen: dict[bytes, int] = {}
    # Other types and shapes are a problem of their own and have no images to count.
    countable = features.dtype.kind in "fiu" and features.ndim in (2, 3) and 0 not in features.shape
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


def _class_counts(meta_lines: list[str], label: str | None) -> dict[str, int]:
    """Rows of each class in ascending order of their names; empty where there is no such column."""
    if label is None or not meta_lines or label not in meta_lines[0].split("\t"):
        return {}
    return dict(sorted(Counter(column(meta_lines, label)).items()))


def _counts_of(pairs: Pairs) -> dict[str, int]:
    """Pairs of each class as given; empty without labels."""
    if pairs.labels is None:
        return {}
    counts = np.bincount(pairs.labels, minlength=len(pairs.class_names)).tolist()
    return dict(zip(pairs.class_names, counts, strict=True))


def _range(counts: Sequence[int]) -> Range | None:
    return Range(min(counts), sum(counts) / len(counts), max(counts)) if counts else None
