"""Numbers and names as people say them, in text that can be written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Rows = list[list[str]]
"""Titles, then one row an entry."""


def percent(share: float) -> str:
    """A share as people say it: whole from ten on, one decimal below."""
    return f"{100 * share:.0f} %" if 100 * share >= 9.95 else f"{100 * share:.1f} %"


def percent_span(low: float, high: float) -> str:
    """An interval of shares, both ends with as many decimals as the smaller needs."""
    decimals = 0 if 100 * low >= 9.95 else 1
    return f"{100 * low:.{decimals}f}–{100 * high:.{decimals}f} %"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(count: float) -> str:
    """Bytes in the unit that leaves one to three digits before the point."""
    power = min(3, max(0, (len(str(int(count))) - 1) // 3))
    return f"{count / 1000**power:,.{min(1, power)}f} {('bytes', 'kB', 'MB', 'GB')[power]}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def printable(text: str) -> str:
    """The text with what UTF-8 cannot write (lone surrogates, which JSON can hold) as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain(value: Any) -> Any:
    """The same in what JSON knows, paths as text; NaN and infinity become None."""
    if isinstance(value, dict):
        return {printable(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # an array, or a number out of one
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else printable(str(value))


def wrong_share_sentence(share: float, error: float) -> str:
    """The estimate of how many class labels are wrong at random, with its interval."""
    return (
        f"Share of labels that are wrong at random, by linear models that have not learned them: {percent(share)} "
        f"(95 % interval {percent_span(max(0.0, share - 1.96 * error), min(1.0, share + 1.96 * error))})"
    )


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def aligned(rows: Rows) -> str:
    """Columns of equal width, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
