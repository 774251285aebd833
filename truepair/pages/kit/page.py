"""All pages are made here: one HTML file that needs nothing else, light or dark as the reader's system is."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from truepair import __version__
from truepair.phrases import counted, percent

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_OPTION = re.compile(r"(truepair train )?--[a-z][a-z-]*( [0-9.]*[0-9]| [a-z]+-[a-z]+)?")


def render(template: str, **values: Any) -> str:
    """The page of a template such as `audit/page.html`, which fills the blocks of `kit/base.html`."""
    return _environment().get_template(template).render(version=__version__, style=_style(), **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("truepair.pages", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": "{:,}".format,
        "fixed": lambda value, digits=3: f"{value:.{digits}f}",
        "percent": lambda share: tight(percent(share)),
        "prose": prose,
        "clipped": clipped,
    }
    environment.globals |= {"counted": counted}
    return environment


@cache
def _style() -> Markup:
    return Markup((Path(__file__).parent / "style.css").read_text(encoding="utf-8"))


def tight(text: str) -> str:
    """The text with its numbers kept on the line of their %."""
    return text.replace(" %", "\u00a0%")


def prose(text: str) -> Markup:
    """Sentences with the options of the command in them as code."""
    return Markup(_OPTION.sub(r"<code>\g<0></code>", str(escape(tight(text)))))


def clipped(text: str, letters: int) -> str:
    """The text in one line of at most so many letters, without control signs and without those that turn direction."""
    readable = text[: 4 * letters].encode("utf-8", "replace").decode("utf-8")
    flat = " ".join(_STEERING.sub(" ", readable).split())
    return flat if len(flat) <= letters else flat[: letters - 1] + "…"


def data_source(data: bytes, kind: str = "png") -> str:
    """An image file as the `src` of an `<img>`."""
    return f"data:image/{kind};base64," + base64.b64encode(data).decode("ascii")
