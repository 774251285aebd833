"""The folder a page is written to: made where it is not there, refused where it holds things of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from truepair.errors import InputError, TruepairError


def check_out(out: Path, own: Iterable[str], mark: str) -> None:
    """Refuse, before any work, a folder that holds what this command did not write.

    Args:
        own: names of what it writes; patterns such as `indicator_*.png` are fine.
        mark: the name without which the others are not taken for its own.

    Raises:
        InputError: it holds other things, or is no folder.
    """
    held = held_in(out)
    foreign = sorted(name for name in held if not any(fnmatchcase(name, pattern) for pattern in own))
    if foreign or (held and mark not in held):
        refuse(out, foreign[0] if foreign else sorted(held)[0])


def held_in(out: Path) -> set[str]:
    """Names of what a folder holds; none where it is not there."""
    try:
        return {path.name for path in out.iterdir()}
    except FileNotFoundError:
        return set()
    except NotADirectoryError:
        raise InputError(f"{out} is a file; choose another --out") from None
    except OSError as error:
        raise TruepairError(f"{out} cannot be read: {error.strerror}; choose another --out") from error


def refuse(out: Path, name: str) -> None:
    raise InputError(
        f"{out} holds other things ({name}); nothing was changed. Choose a new or empty folder as --out, or one that "
        "this command made before"
    )


def make_folder(out: Path) -> None:
    """Raises TruepairError: the folder cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TruepairError(f"{out} cannot be made a folder: {error.strerror}; choose another --out") from error
