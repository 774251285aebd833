"""What becomes of a caption as a source gives it: clean words, or the reason why it is none."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_CAPTION = 10_000
"""Characters of a caption that a model is given; no description of a picture is longer."""

# Characters that `str.split` takes for letters though nothing is seen of them.
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True)
class Caption:
    """A caption that was looked at.

    Attributes:
        text: words with single spaces, at most `LONGEST_CAPTION` characters; empty where there is nothing usable.
        reason, detail: as in `Problem`; empty where there is nothing to say. With text, the caption is used.
    """

    text: str
    reason: str = ""
    detail: str = ""


def read_caption(value: object) -> Caption:
    """The caption of a table's cell or a shard's member; anything but words is told, never guessed at."""
    if value is None:
        return Caption("", "caption-not-text", "the caption is null; write one, or remove the entry")
    if not isinstance(value, str):
        found = f"{type(value).__name__} {str(value)[:40]!r}"
        return Caption("", "caption-not-text", f"the caption is {found}, not text; put it in quotes if it is meant")
    text = printable(" ".join(value.split()))
    if not text.strip(_INVISIBLE + " "):
        return Caption("", "empty-caption", "the caption is empty or only spaces; write one, or remove the entry")
    if len(text) > LONGEST_CAPTION:
        detail = (
            f"the caption has {len(text):,} characters, of which the first {LONGEST_CAPTION:,} were read; check that "
            "no whole document or damaged quote stands in its place"
        )
        return Caption(text[:LONGEST_CAPTION].rstrip(), "long-caption", detail)
    return Caption(text)


def printable(text: str) -> str:
    """The text with what UTF-8 cannot write (lone surrogates) as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
