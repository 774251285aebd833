"""What a data set holds and what is wrong with it, without stopping at the first fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from truepair.data.collection import Problem
from truepair.data.config import Reading
from truepair.data.description import MOST_PROBLEMS, Description, SplitDescription
from truepair.data.open import check_options, format_of
from truepair.data.pairs import Pairs
from truepair.data.statistics import describe_pairs


def describe(
    source: Path | str | Pairs,
    *,
    splits: Sequence[str] | None = None,
    label: str | None = None,
    table: str | None = None,
    caption: str | None = None,
    image: str | None = None,
    encoder: str | None = None,
    progress: bool | None = None,
) -> Description:
    """What a source (all its splits, or those named) or a `Pairs` holds. Bad entries are listed, never raised.

    In the precomp layout, features are read once for the counts and once for the problems, in pieces of 16 MiB.
    Embeddings are read in ranges. Files of labelled features are checked as a whole when read: there the first fault
    is raised. A `Pairs` is one split; its problems are not listed, as it has passed its source's checks, but its
    counts are.

    Args:
        label: column whose classes are counted; sources of labelled features have theirs anyway.
        table, caption, image, encoder: as `open`.

    Raises:
        InputError: the source, or a split in it, is missing altogether; or as `open` where it is not precomp.
    """
    if isinstance(source, Pairs):
        return Description(source.name, (describe_pairs(source),))
    reading = Reading(table=table, caption=caption, image=image, label=label, encoder=encoder, progress=progress)
    format = format_of(source, reading)
    check_options(format, source, reading)
    names = format.splits(source, reading) if splits is None else tuple(splits)
    found = tuple(format.describe(source, name, reading) for name in names or (None,))
    return Description(str(source), _with_other_widths(_with_unseen_classes(found)))


def _training(splits: tuple[SplitDescription, ...]) -> SplitDescription | None:
    return next((split for split in splits if split.name.rpartition("/")[2] == "train"), None)


def _with_other_widths(splits: tuple[SplitDescription, ...]) -> tuple[SplitDescription, ...]:
    """The same, with a problem where features have another width than those of training: no model takes both."""
    train = _training(splits)
    if train is None:
        return splits
    return tuple(_with_problems_first(split, _other_widths(split, train)) for split in splits)


def _other_widths(split: SplitDescription, train: SplitDescription) -> list[Problem]:
    found = []
    for side, here, there in (
        ("image", split.images, train.images),
        ("text", split.text_features, train.text_features),
    ):
        if here and there and len(here.shape) > 1 and len(there.shape) > 1 and here.shape[-1] != there.shape[-1]:
            detail = f"its {side} features are {here.shape[-1]} wide, those of {train.name} {there.shape[-1]}; a model "
            detail += "takes one width: make both in the same way"
            found.append(Problem(split.name, split.name, -1, "other-width", detail))
    return found


def _with_problems_first(split: SplitDescription, more: list[Problem]) -> SplitDescription:
    problems = (*more, *split.problems)[:MOST_PROBLEMS]
    return replace(split, problems=problems, problem_count=split.problem_count + len(more))


def _with_unseen_classes(splits: tuple[SplitDescription, ...]) -> tuple[SplitDescription, ...]:
    """The same, each told which of its classes the training split lacks, where that is among them."""
    train = _training(splits)
    if train is None or not train.class_counts:
        return splits
    learned = {name for name, count in train.class_counts.items() if count}
    unseen = ([name for name, n in split.class_counts.items() if n and name not in learned] for split in splits)
    return tuple(replace(split, unseen_classes=tuple(names)) for split, names in zip(splits, unseen, strict=True))
