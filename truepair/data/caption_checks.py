"""Captions that should be looked at, of any collection: empty ones, and those that are no words of its language.

They are found by their characters alone, and audited all the same.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from functools import lru_cache

import numpy as np

from truepair.data.collection import Collection, PairsCollection, Problem
from truepair.data.text import MOST_WORDS

_RANGE = 65_536
LEAST_LETTERS = 0.25
"""Share of letters in a caption without its spaces, addresses and file names, below which it is hardly words."""
OWN_SCRIPT, OWN_CAPTIONS = 0.25, 3
"""A script with this share of all captions, and at least this many, is one of the collection's own."""

_ADDRESSES = ("http://", "https://", "www.")
_PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".svg", ".raw")
_CAMERA = re.compile(r"(?:img|dsc[nf]?|pxl|mvimg|dcim|image|photo|screenshot)[_-]?\d[\w-]*")
_SUSPECT = re.compile(r"[.@\d]")
# Scripts that are written together, under one name.
_TOGETHER = {"CJK": "Chinese or Japanese", "HIRAGANA": "Chinese or Japanese", "KATAKANA": "Chinese or Japanese"}
_WIDTHS = ("FULLWIDTH", "HALFWIDTH", "MODIFIER", "MATHEMATICAL", "SUPERSCRIPT", "SUBSCRIPT", "FEMININE", "MASCULINE")
_EMPTY, _NO_WORDS, _LONG = "(empty)", "(no words)", "(long)"


def caption_problems(collection: Collection) -> list[Problem]:
    """The captions that are empty ("empty-caption"), foreign ("foreign-caption") or too long to be read to the end
    ("long-caption"), in order; all of them are used.

    Foreign is a caption with hardly any letters (addresses, file names, digits, signs), and one in another script than
    the collection's: its most frequent script, and those of at least `OWN_SCRIPT` of the captions. Collections without
    words (feature files, embeddings without metadata) have none; where most captions are empty, only the others are
    looked at. Reads in ranges; remembers one byte a pair.
    """
    if isinstance(collection, PairsCollection) and collection.pairs.texts.features is not None:
        return []  # the texts are vectors, their captions names
    number: dict[str, int] = {}
    codes = array("H")
    for start in range(0, len(collection), _RANGE):
        for caption in collection.captions(start, min(start + _RANGE, len(collection))):
            kind = _LONG if len(caption) > 2 * MOST_WORDS and len(caption.split()) > MOST_WORDS else script_of(caption)
            codes.append(number.setdefault(kind, len(number)))
    kinds = list(number)
    counts = Counter({kind: codes.count(code) for kind, code in number.items()})
    own = _own_scripts(counts)
    fine = {*own, *([_EMPTY] if 2 * counts[_EMPTY] > len(codes) else [])}
    known = [number[kind] for kind in fine if kind in number]
    odd = np.flatnonzero(~np.isin(np.frombuffer(codes, dtype=np.uint16), known))
    problems = [_problem(collection, int(row), kinds[codes[row]], own) for row in odd]
    cut = {(told.file, told.row, told.reason) for told in collection.problems}  # a long one, when it was read
    return [problem for problem in problems if (problem.file, problem.row, problem.reason) not in cut]


def script_of(caption: str) -> str:
    """The script that most letters of a caption are in ("Latin", "Cyrillic", …), or what it is instead of words."""
    text = "".join(caption.split())
    if not text:
        return _EMPTY
    if _SUSPECT.search(text):
        # The share is of what is left of the caption: "a cat, http://…" has words.
        text = "".join(token for token in caption.split() if not _is_name(token.lower().strip("()[]<>\"',;.")))
    letters = [character for character in text if character.isalpha()]
    if not letters or len(letters) < LEAST_LETTERS * len(text):
        return _NO_WORDS
    if caption.isascii():
        return "Latin"
    return Counter(map(_script, letters)).most_common(1)[0][0]


def _is_name(token: str) -> bool:
    """Whether it is an address, or the name of a picture's file."""
    at_host = "@" in token and "." in token.rpartition("@")[2]
    return at_host or token.startswith(_ADDRESSES) or token.endswith(_PICTURES) or bool(_CAMERA.fullmatch(token))


@lru_cache(maxsize=65_536)
def _script(letter: str) -> str:
    """The script of a letter, by its name in Unicode."""
    words = [word for word in unicodedata.name(letter, "UNKNOWN").split() if word not in _WIDTHS]
    first = words[0] if words else "UNKNOWN"
    return _TOGETHER.get(first.partition("-")[0], first.capitalize())


def _own_scripts(counts: Counter[str]) -> list[str]:
    scripts = Counter({kind: count for kind, count in counts.items() if kind not in (_EMPTY, _NO_WORDS, _LONG)})
    ranked = scripts.most_common()
    least = max(OWN_CAPTIONS, OWN_SCRIPT * scripts.total())
    return [kind for place, (kind, count) in enumerate(ranked) if place == 0 or count >= least]


def _problem(collection: Collection, row: int, kind: str, own: list[str]) -> Problem:
    caption = collection.captions(row, row + 1)[0]
    shown = repr(caption if len(caption) <= 60 else caption[:57] + "…")
    reason = "foreign-caption"
    if kind == _EMPTY:
        reason, detail = "empty-caption", "the caption is empty; write one, or remove the pair"
    elif kind == _LONG:
        reason = "long-caption"
        detail = f"the caption has {len(caption.split()):,} words, of which models read the first {MOST_WORDS:,}"
    elif kind == _NO_WORDS:
        detail = f"the caption {shown} has hardly any letters; a file name, address or number describes no picture"
    else:
        detail = f"the caption {shown} is in another script ({kind}) than the others ({', '.join(own)}); translate it?"
    return Problem(collection.ids(row, row + 1)[0], *collection.place(row), reason, detail, used=True)
