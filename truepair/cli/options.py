"""From a config dataclass to command-line options and back: names, types, defaults and help stand in one place."""

from __future__ import annotations

import argparse
import types
from collections.abc import Callable, Iterator
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
        add_option(group, option, hints[option.name], prefix=prefix)


def add_option(
    group: Any, option: Field[Any], hint: Any, *, prefix: str = "", whose: str = "", others: str = ""
) -> None:
    name = f"--{prefix}{option.name}".replace("_", "-")
    described = whose + describe(option) + others
    if hint is bool:
        group.add_argument(name, dest=prefix + option.name, action="store_true", default=ABSENT, help=described)
        return
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


def add_shared_options(parser: argparse.ArgumentParser, title: str, kinds: dict[str, type[Any]]) -> None:
    """One option per field name of several configs, under a heading; the help of each says whose it is."""
    group = parser.add_argument_group(title)
    known: dict[str, list[str]] = {}
    for name, config in kinds.items():
        for option in fields(config):
            known.setdefault(option.name, []).append(name)
    for field_name, names in known.items():
        config = kinds[names[0]]
        option = next(option for option in fields(config) if option.name == field_name)
        whose = "" if len(names) == len(kinds) else f"{', '.join(names)}: "
        defaults = {name: kinds[name].__dataclass_fields__[field_name].default for name in names}
        others = [f"{name}: {value}" for name, value in defaults.items() if value != option.default]
        add_option(
            group,
            option,
            get_type_hints(config)[field_name],
            whose=whose,
            others=f" [{', '.join(others)}]" if others else "",
        )


def options_of_others(
    arguments: argparse.Namespace, kinds: dict[str, type[Any]], chosen: str
) -> Iterator[tuple[str, list[str]]]:
    """Every given option that the chosen config does not have, with the names of those that do."""
    own = {option.name for option in fields(kinds[chosen])}
    for config in kinds.values():
        for option in given_options(arguments, config):
            if option not in own:
                owners = [name for name, kind in kinds.items() if option in {other.name for other in fields(kind)}]
                yield f"--{option}".replace("_", "-"), owners


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
