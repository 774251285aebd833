"""From a config dataclass to command-line options and back: names, types, defaults and help stand in one place."""

from __future__ import annotations

import argparse
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

ABSENT = argparse.SUPPRESS


def add_options(parser: argparse.ArgumentParser, title: str, config: type[Any], *, prefix: str = "") -> None:
    """One option per field of `config` that has help, under a heading; options not given leave no trace."""
    group = parser.add_argument_group(title)
    hints = get_type_hints(config)
    for option in fields(config):
        if "help" not in option.metadata:
            continue
        name = f"--{prefix}{option.name}".replace("_", "-")
        hint, described = hints[option.name], describe(option)
        if hint is bool:
            group.add_argument(name, dest=prefix + option.name, action="store_true", default=ABSENT, help=described)
            continue
        choices = get_args(hint) if get_origin(hint) is Literal else None
        group.add_argument(
            name,
            dest=prefix + option.name,
            type=reader(hint),
            choices=choices,
            metavar=None if choices else metavar(hint),
            default=ABSENT,
            help=described,
        )


def given_options(arguments: argparse.Namespace, config: type[Any], *, prefix: str = "") -> dict[str, Any]:
    """The fields of `config` that the command line set."""
    given = vars(arguments)
    return {option.name: given[prefix + option.name] for option in fields(config) if prefix + option.name in given}


def describe(option: Field[Any]) -> str:
    """Help text with the default, percent signs escaped for argparse."""
    text = str(option.metadata["help"])
    if option.default is not MISSING and option.default is not None and not isinstance(option.default, bool):
        text += f" [default: {option.default}]"
    return text.replace("%", "%%")


def reader(hint: Any) -> Callable[[str], Any]:
    """What turns an option's text into a value of the field's type."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        return whole_numbers
    if get_origin(hint) is Literal:
        return str
    return hint  # type: ignore[no-any-return]


def metavar(hint: Any) -> str:
    kind = reader(hint)
    return {int: "N", float: "X", str: "NAME", whole_numbers: "N,N,…"}[kind]


def whole_numbers(text: str) -> tuple[int, ...]:
    """`7,7,7` → (7, 7, 7); `none` → ()."""
    if text == "none":
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 7,7,7, nor none") from None
