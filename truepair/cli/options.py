"""From a config dataclass to command-line options and back: names, types, defaults and help stand in one place."""

from __future__ import annotations

import argparse
import math
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from truepair.errors import InputError, TruepairError

ABSENT = argparse.SUPPRESS


def add_options(
    parser: argparse.ArgumentParser,
    title: str,
    config: type[Any],
    *,
    prefix: str = "",
    hidden: bool = False,
    leave_out: Collection[str] = (),
) -> Any:
    """One option per field of `config` that has help, under a heading; options not given leave no trace.

    Returns the group, for further options under that heading.

    Args:
        hidden: take them, but do not show them in the help.
        leave_out: fields that get no option.
    """
    group = parser.add_argument_group(title)
    hints = get_type_hints(config)
    for option in fields(config):
        if "help" in option.metadata and option.name not in leave_out:
            add_option(group, option, hints[option.name], prefix=prefix, hidden=hidden)
    return group


def add_option(group: Any, option: Field[Any], hint: Any, *, prefix: str = "", hidden: bool = False) -> None:
    name = flag(option.name, prefix)
    described = argparse.SUPPRESS if hidden else describe(option)
    if hint is bool:
        # What is on by default can be switched off, and so can what a paper's settings switch on.
        kinds = argparse.BooleanOptionalAction if prefix or option.default is True else "store_true"
        group.add_argument(name, dest=prefix + option.name, action=kinds, default=ABSENT, help=described)
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


def add_engine_options(parser: argparse.ArgumentParser, engines: dict[str, type[Any]], chosen: str | None) -> None:
    """The options of all engines, which share names such as --width; the help shows those of the chosen one only."""
    known: set[str] = set()
    for name in sorted(engines, key=lambda name: name != chosen):
        add_options(parser, f"engine {name}", engines[name], hidden=name != chosen, leave_out=known)
        known |= {option.name for option in fields(engines[name])}


def option_in(arguments: Sequence[str], option: str) -> str | None:
    """The last value that a command line gives an option, before it is parsed; None where it gives none."""
    value = None
    for place, word in enumerate(arguments):
        if word == option and place + 1 < len(arguments):
            value = arguments[place + 1]
        elif word.startswith(f"{option}="):
            value = word[len(option) + 1 :]
    return value


def options_of_others(
    arguments: argparse.Namespace, kinds: dict[str, type[Any]], chosen: str
) -> Iterator[tuple[str, list[str]]]:
    """Every given option that the chosen config does not have, with the names of those that do."""
    own = {option.name for option in fields(kinds[chosen])}
    for config in kinds.values():
        for option in given_options(arguments, config):
            if option not in own:
                owners = [name for name, kind in kinds.items() if option in {other.name for other in fields(kind)}]
                yield flag(option), owners


def given_options(arguments: argparse.Namespace, config: type[Any], *, prefix: str = "") -> dict[str, Any]:
    """The fields of `config` that have help, and that the command line set."""
    given, known = vars(arguments), [option.name for option in fields(config) if "help" in option.metadata]
    return {name: given[prefix + name] for name in known if prefix + name in given}


def refuse_alone(given: Collection[str], needs: Mapping[str, Sequence[str]]) -> None:
    """Refuse an option that has no effect, since none of those that it needs was given.

    Args:
        given: the names of the options of the command line.
        needs: for an option those of which it needs at least one.

    Raises:
        InputError: names the option and what it needs.
    """
    for name, others in needs.items():
        if name in given and not any(other in given for other in others):
            option, partners = flag(name), " or ".join(map(flag, others))
            raise InputError(f"{option} has no effect without {partners}; leave it out, or give {partners}, too")


def flag(name: str, prefix: str = "") -> str:
    return f"--{prefix}{name}".replace("_", "-")


def flags_of(config: type[Any], prefix: str = "") -> dict[str, str]:
    """The option of every field of `config` that has help."""
    return {option.name: flag(option.name, prefix) for option in fields(config) if "help" in option.metadata}


@contextmanager
def errors_name_options(flags: Mapping[str, str]) -> Iterator[None]:
    """An error raised inside names the options of the command line where it names fields of a config."""
    try:
        yield
    except TruepairError as error:
        error.args = (in_flags(str(error), flags), *error.args[1:])
        raise


def in_flags(message: str, flags: Mapping[str, str]) -> str:
    """`word_share is 2; …` → `--word-share is 2; …`: any name before its value or after "no option", others if they are
    no English words.
    """
    first = re.match(r"\w+(?=( and \w+)? (is|are) \S+( or \S+)?([;,:]|$))", message)
    if first and first[0] in flags:
        message = flags[first[0]] + message[first.end() :]
    message = re.sub(r"(?<=\bno option )\w+", lambda found: flags.get(found[0], found[0]), message)
    return re.sub(
        r"(?<![\w/.'\"-])[a-z]+(_[a-z]+)+(?![\w/.'\"=-])", lambda found: flags.get(found[0], found[0]), message
    )


def describe(option: Field[Any]) -> str:
    """Help text with the default, percent signs escaped for argparse."""
    text = re.sub(r"[;.] [dD]efault: (.+)$", r" [default: \1]", str(option.metadata["help"]))
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
    return {int: whole, float: finite}.get(hint, hint)  # type: ignore[no-any-return]


def metavar(hint: Any) -> str:
    kind = reader(hint)
    return {whole: "N", finite: "X", str: "NAME", whole_numbers: "N,N,…"}[kind]


def whole(text: str) -> int:
    """A whole number that 64 bits hold."""
    try:
        value = int(text)
    except ValueError:
        value = 2**63
    if abs(value) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number within 64 bits")
    return value


def finite(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a finite number")
    return value


def whole_numbers(text: str) -> tuple[int, ...]:
    """`7,7,7` → (7, 7, 7); `none` → ()."""
    if text == "none":
        return ()
    try:
        return tuple(whole(part) for part in text.split(","))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 7,7,7, nor none") from None
