"""Captions to word ids: one regular expression, one vocabulary."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.files import read_file, write_json_atomically

PAD, START, END, UNKNOWN, MASK = "<pad>", "<start>", "<end>", "<unk>", "<mask>"
SPECIALS = (PAD, START, END, UNKNOWN, MASK)

MOST_WORDS = 1000
"""Words of a caption that a model reads; one of a whole document would make its batch take all memory and time."""

# Either a run of letters and digits of any script, with inner hyphens ("t-shirt"), or an apostrophe ending on its own
# ("'s"). The ending is split off as NLTK does, so that "women's" shares the word "women" with other captions and finds
# its two words in the field's published vocabularies.
# Vowel signs and accents that stand as characters of their own belong to the letter before them (Devanagari, Thai, …).
_MARKS = "".join(chr(code) for code in range(0x300, 0x2000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_RUN = rf"[^\W_](?:[^\W_]|[{_MARKS}])*"
_WORD = re.compile(rf"{_RUN}(?:-{_RUN})*|(?<=[^\W_])'{_RUN}")

# What the field's published vocabularies were made with (NLTK's word_tokenize) does beyond that: "n't" is a word of its
# own, numbers keep their inner signs, and every other sign is a word.
_WORD_OR_SIGN = re.compile(rf"{_RUN}(?=n't\b)|n't\b|\d+(?:[.,/:]\d+)+|{_WORD.pattern}|\.\.\.|[^\w\s]")


def tokenise(caption: str, *, signs: bool = False) -> list[str]:
    """The words of a caption in lower case; punctuation, underscores and symbols separate words and are dropped.

    Letters are brought to their composed Unicode form and the curly apostrophe to the straight one, so that one
    word is always spelled one way. Scripts without spaces give one word per run of letters.

    Args:
        signs: punctuation marks and symbols are words as well, as in the field's published vocabularies.

    >>> tokenise("Women's T-shirt, 2 colours!")
    ['women', "'s", 't-shirt', '2', 'colours']
    >>> tokenise("He isn't 1,000 years old.", signs=True)
    ['he', 'is', "n't", '1,000', 'years', 'old', '.']
    """
    pattern = _WORD_OR_SIGN if signs else _WORD
    return pattern.findall(unicodedata.normalize("NFC", caption.lower()).replace("\u2019", "'"))


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows; word i has id i, and id 0 is the padding.

    Attributes:
        words: all words, the specials `<pad>`, `<start>`, `<end>`, `<unk>` and usually `<mask>` among them.
        index: word -> id.
        ordinary: the ids of all words that are not special, ascending.
        pad, start, end, unknown: the ids of these specials.

    Raises:
        InputError: a word occurs twice, a special word is missing, or `<pad>` is not word 0.
    """

    words: tuple[str, ...]
    index: dict[str, int] = field(init=False, repr=False, compare=False)
    ordinary: tuple[int, ...] = field(init=False, repr=False, compare=False)
    pad: int = field(init=False, repr=False, compare=False)
    start: int = field(init=False, repr=False, compare=False)
    end: int = field(init=False, repr=False, compare=False)
    unknown: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {word: number for number, word in enumerate(self.words)}
        if len(index) != len(self.words):
            twice = next(word for number, word in enumerate(self.words) if index[word] != number)
            raise InputError(f"vocabulary: the word {twice!r} occurs twice; every word must have one id")
        missing = [word for word in (PAD, START, END, UNKNOWN) if word not in index]
        if missing:
            raise InputError(
                f"vocabulary: {len(self.words)} words without {', '.join(missing)}; a vocabulary needs "
                f"{PAD}, {START}, {END} and {UNKNOWN}. Add them, or build a new one with Vocabulary.build(captions)"
            )
        if index[PAD] != 0:
            raise InputError(
                f"vocabulary: {PAD} has id {index[PAD]}; expected 0, because batches are padded with 0. "
                f"Renumber the words or build a new vocabulary with Vocabulary.build(captions)"
            )
        ordinary = tuple(number for number, word in enumerate(self.words) if word not in SPECIALS)
        ids = {"pad": index[PAD], "start": index[START], "end": index[END], "unknown": index[UNKNOWN]}
        for name, value in {"index": index, "ordinary": ordinary, **ids}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, captions: Iterable[str], *, minimum_count: int = 4) -> Vocabulary:
        """The words that occur at least `minimum_count` (>= 1) times, after the five specials, frequent ones first.

        Words of equal count stand in alphabetical order, so the order of the captions does not matter.

        Raises:
            InputError: `minimum_count` is below 1, or no word is frequent enough.
        """
        if minimum_count < 1:
            raise InputError(f"minimum_count is {minimum_count}; expected a whole number of at least 1")
        counts = Counter(word for caption in captions for word in tokenise(caption))
        frequent = [word for word, count in counts.items() if count >= minimum_count]
        if not frequent:
            raise InputError(
                f"none of the {len(counts)} different words of the captions occurs {minimum_count} times, so the "
                "vocabulary would be empty; give more captions or a smaller minimum_count (1 keeps every word)"
            )
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls((*SPECIALS, *frequent))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def digest(self) -> str:
        """A short hash of the words in their order: two vocabularies with the same one read captions alike."""
        return hashlib.sha256("\0".join(self.words).encode("utf-8")).hexdigest()[:16]

    @property
    def mask(self) -> int:
        """The id of `<mask>`; that of `<unk>` in published vocabularies without a mask, as CRCL's code has it."""
        return self.index.get(MASK, self.unknown)

    @property
    def reads_signs(self) -> bool:
        """Whether the full stop is a word of it: then it was made of captions whose punctuation marks were words."""
        return "." in self.index

    def encode(self, caption: str) -> list[int]:
        """The ids start, words (the first `MOST_WORDS`), end; length >= 3. An unknown word, or a caption without any
        word, gives `<unk>`.

        A vocabulary with the full stop among its words (`reads_signs`) has captions read with their punctuation.
        """
        ids = [self.index.get(word, self.unknown) for word in tokenise(caption, signs=self.reads_signs)]
        return [self.start, *(ids or [self.unknown])[:MOST_WORDS], self.end]

    @classmethod
    def read(cls, path: Path | str) -> Vocabulary:
        """The vocabulary of a `*_vocab.json` file of the field: an object with `word2idx`, `idx2word`, `idx`.

        `word2idx` gives each word its id, `idx2word` each id (as a string) its word, `idx` the next free id.
        Published files often lack `<mask>`; see `mask`.

        Raises:
            InputError: the file is missing, is not such an object, its ids are not 0 ... n-1 or contradict each
                other, or a special word other than `<mask>` is missing.
        """
        path = Path(path)
        content = _read_object(path)
        fault = next(_faults(**content), None)
        if fault is not None:
            remedy = "repair the file or build a new one with Vocabulary.build(captions).write(path)"
            raise InputError(f"{path}: {fault}; {remedy}")
        try:
            return cls(tuple(sorted(content["word2idx"], key=content["word2idx"].__getitem__)))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def write(self, path: Path | str) -> None:
        """Write the vocabulary in the format that `read` reads.

        Raises:
            InputError: the file exists with other content.
            TruepairError: the file cannot be written.
        """
        value = {
            "word2idx": self.index,
            "idx2word": {str(number): word for number, word in enumerate(self.words)},
            "idx": len(self.words),
        }
        write_json_atomically(path, value, overwrite=False)


def _faults(word2idx: Any, idx2word: Any, idx: Any) -> Iterator[str]:
    """Why the ids are not 0 ... n-1, or `idx2word` and `idx` do not agree."""
    if not isinstance(word2idx, dict) or not isinstance(idx2word, dict):
        yield "word2idx and idx2word must both be JSON objects"
        return
    size = len(word2idx)
    for word, number in word2idx.items():
        if type(number) is not int or not 0 <= number < size:
            expected = f"expected whole numbers 0 ... {size - 1}, one for each of its {size} words"
            yield f"word2idx gives {word!r} the id {number!r}; {expected}"
        elif (other := idx2word.get(str(number))) != word:
            found = f"idx2word[{str(number)!r}] is {other!r}"
            yield f"word2idx gives {word!r} the id {number}, but {found}; both must say the same"
    if len(idx2word) != size:
        yield f"idx2word has {len(idx2word)} words and word2idx {size}"
    if type(idx) is not int or idx != size:
        yield f"idx is {idx!r}; expected {size}, the number of words"


def _read_object(path: Path) -> dict[str, Any]:
    """The three entries of a vocabulary file."""
    keys, form = ("word2idx", "idx2word", "idx"), 'an object with the keys "word2idx", "idx2word" and "idx"'
    remedy = "one with Vocabulary.build(captions).write(path)"
    try:
        content = json.loads(read_file(path))
    except OSError as error:
        found = f"cannot be read ({error.strerror or error}); expected a vocabulary file"
        raise InputError(f"{path} {found}. Check the path, or write {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); expected {form}. Download or build the file again") from error
    missing = [key for key in keys if not isinstance(content, dict) or key not in content]
    if missing:
        found = f"the keys {sorted(content)[:8]}" if isinstance(content, dict) else type(content).__name__
        raise InputError(
            f"{path}: {', '.join(missing)} missing (found {found}); expected {form}. "
            f"Is this the vocabulary file? Otherwise build {remedy}"
        )
    return {key: content[key] for key in keys}
