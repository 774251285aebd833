"""One option of a dataclass of options: its default, its bounds, and the line of `--help` about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from truepair.errors import InputError

T = TypeVar("T")

SHARE = {"least": 0, "most": 1}
"""The bounds of a share or a probability: [0, 1]."""


def option(default: T, about: str, **more: Any) -> T:
    """The dataclass field.

    Args:
        about: its `help`.
        more: its bounds (above and below leave the bound out, least and most do not), `idle` (name of another option of
            the same dataclass → its values beside which this one has no effect), `idle_together` (the same, but where
            all of these hold), and what else is to be given its metadata.
    """
    return field(default=default, metadata={"help": about, **more})


class Options:
    """A dataclass of options: its values are checked against their bounds and choices.

    Raises:
        InputError: a value is out of bounds, not finite, or none of the choices.
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]
            value, hint = getattr(self, each.name), hints[each.name]
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            if choices and value not in choices:
                raise InputError(f"{each.name} is {value!r}; expected one of {', '.join(choices)}")
            if isinstance(value, int | float) and not within(value, each.metadata):
                raise InputError(f"{each.name} is {value}; expected {bounds_in_words(each.metadata)}")


def idle_beside(options: Any, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of some options of a dataclass, those that have no effect beside its others, each with the one that takes it.

    A weight of 0 agrees with one that leaves its term out.
    """
    described = {each.name: each.metadata for each in fields(options)}
    for name in names:
        if name.endswith("weight") and not getattr(options, name):
            continue
        for other, values in described[name].get("idle", {}).items():
            if getattr(options, other) in values:
                yield name, other
        together = described[name].get("idle_together", {})
        if together and all(getattr(options, other) in values for other, values in together.items()):
            yield name, next(iter(together))


def within(value: float, bounds: Any) -> bool:
    return (
        math.isfinite(value)
        and value > bounds.get("above", -math.inf)
        and value < bounds.get("below", math.inf)
        and bounds.get("least", value) <= value <= bounds.get("most", value)
    )


def bounds_in_words(bounds: Any) -> str:
    low, high = (
        [(key, bounds[key]) for key in keys if key in bounds] for keys in (("above", "least"), ("below", "most"))
    )
    if low and high:
        return f"a value in {'(['[low[0][0] == 'least']}{low[0][1]}, {high[0][1]}{')]'[high[0][0] == 'most']}"
    words = {"above": "a value above", "below": "a value below", "least": "at least", "most": "at most"}
    return " ".join(f"{words[key]} {bound}" for key, bound in (*low, *high)) or "a finite number"
