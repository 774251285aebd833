"""What the options of methods are checked by; importable without torch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from truepair.errors import InputError


def check_above_zero(config: Any, *names: str) -> None:
    for name in names:
        if not getattr(config, name) > 0:
            raise InputError(f"{name} is {getattr(config, name)}; expected a value above 0")


def check_shares(config: Any, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(config, name) <= 1:
            raise InputError(f"{name} is {getattr(config, name)}; expected a value in [0, 1]")


def check_choices(config: Any) -> None:
    """Refuse values that are not among a field's literals.

    Raises:
        InputError: there is one.
    """
    hints = get_type_hints(type(config))
    for option in fields(config):
        known = get_args(hints[option.name]) if get_origin(hints[option.name]) is Literal else None
        if known and getattr(config, option.name) not in known:
            raise InputError(f"{option.name} is {getattr(config, option.name)!r}; expected one of {', '.join(known)}")
