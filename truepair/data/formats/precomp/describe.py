"""What a split of a precomp folder holds and everything that is wrong with it, its files taken as they are."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from truepair.data.description import MOST_PROBLEMS, Range, SplitDescription
from truepair.data.formats.precomp.precomp_files import PrecompSplit, column, copies_in
from truepair.data.formats.precomp.precomp_problems import find_problems
from truepair.data.statistics import caption_statistics, image_statistics


def describe_split(contents: PrecompSplit, label: str | None) -> SplitDescription:
    problems = find_problems(contents, label=label)
    shown = tuple(islice(problems, MOST_PROBLEMS))
    per_image = contents.captions_per_image
    each = copies_in(contents) if per_image is not None and not shown else 1
    per_image = None if per_image is None else per_image * each
    return SplitDescription(
        name=contents.name,
        images=image_statistics(contents.features),
        captions=caption_statistics(contents.captions),
        captions_per_image=None if per_image is None else Range(per_image, per_image, per_image),
        label_columns=_label_columns(contents.meta_lines or []),
        mismatch_rate=None,
        problems=shown,
        problem_count=len(shown) + sum(1 for _ in problems),
        class_counts=_class_counts(contents.meta_lines or [], label),
        copies=each,
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
