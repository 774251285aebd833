"""One option of a dataclass of options: its default, and the line of `--help` about it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeVar

T = TypeVar("T")


def option(default: T, about: str, **more: Any) -> T:
    """The dataclass field; `about` is its `help`, and what else is given its metadata, too."""
    found: T = field(default=default, metadata={"help": about, **more})
    return found
