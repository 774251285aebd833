import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truepair.data.text import Vocabulary, tokenise
from truepair.errors import InputError

CAPTIONS = ["a red hat", "a red shoe", "the Red dog's hat", "a dog"]


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("A red hat.", ["a", "red", "hat"]),
        ("Women's T-shirt, 2 colours!", ["women", "'s", "t-shirt", "2", "colours"]),
        ("women\u2019s", ["women", "'s"]),
        ("'quoted' -dash- a - b", ["quoted", "dash", "a", "b"]),
        ("snake_case a/b", ["snake", "case", "a", "b"]),
        ("Cafe\u0301 \u00dcber", ["café", "über"]),
        ("кошка 猫", ["кошка", "猫"]),
        ("<pad> <unk>", ["pad", "unk"]),
        (" .,!? ", []),
        ("", []),
    ],
)
def test_tokenise(caption: str, words: list[str]) -> None:
    assert tokenise(caption) == words


@given(st.text())
def test_words_hold_no_space_and_no_upper_case(caption: str) -> None:
    for word in tokenise(caption):
        assert word
        assert not any(letter.isspace() for letter in word)
        assert word == word.lower()


def test_build_counts_and_orders() -> None:
    vocabulary = Vocabulary.build(CAPTIONS, minimum_count=2)
    assert vocabulary.words == ("<pad>", "<start>", "<end>", "<unk>", "<mask>", "a", "red", "dog", "hat")
    special = (vocabulary.pad, vocabulary.start, vocabulary.end, vocabulary.unknown, vocabulary.mask)
    assert special == (0, 1, 2, 3, 4)
    assert len(vocabulary) == 9
    assert vocabulary.ordinary == (5, 6, 7, 8)
    assert Vocabulary.build(reversed(CAPTIONS), minimum_count=2) == vocabulary


def test_default_minimum_count_is_four() -> None:
    assert Vocabulary.build(["often rare"] * 3 + ["often"]).words[5:] == ("often",)


def test_encode() -> None:
    vocabulary = Vocabulary.build(CAPTIONS, minimum_count=2)
    assert vocabulary.encode("A RED zebra hat") == [1, 5, 6, 3, 8, 2]
    assert vocabulary.encode("?!") == [1, 3, 2]


def test_build_refuses_what_leaves_no_word() -> None:
    with pytest.raises(InputError, match=r"none of the 3 different words .* occurs 4 times.*smaller minimum_count"):
        Vocabulary.build(["a red hat"])
    with pytest.raises(InputError, match="minimum_count is 0; expected a whole number of at least 1"):
        Vocabulary.build(CAPTIONS, minimum_count=0)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_file_gives_back_the_vocabulary(tmp_path_factory: pytest.TempPathFactory, captions: list[str]) -> None:
    vocabulary = Vocabulary.build([*captions, "word"], minimum_count=1)
    path = tmp_path_factory.mktemp("vocabulary") / "a_vocab.json"
    vocabulary.write(path)
    assert Vocabulary.read(path) == vocabulary
    assert set(json.loads(path.read_bytes())) == {"word2idx", "idx2word", "idx"}


def test_write_keeps_a_different_file(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    first = Vocabulary.build(CAPTIONS, minimum_count=1)
    first.write(path)
    first.write(path)
    with pytest.raises(InputError, match=r"v.json exists with other content"):
        Vocabulary.build(CAPTIONS, minimum_count=2).write(path)
    assert Vocabulary.read(path) == first


def published(*words: str) -> dict[str, Any]:
    """The field's file of these words, without a mask as most published ones."""
    words = ("<pad>", "<start>", "<end>", "<unk>", *words)
    return {
        "word2idx": {word: k for k, word in enumerate(words)},
        "idx2word": {str(k): word for k, word in enumerate(words)},
        "idx": len(words),
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_published_files_lack_the_mask(tmp_path: Path) -> None:
    vocabulary = Vocabulary.read(write(tmp_path / "v.json", published("man", "dog")))
    assert vocabulary.mask == vocabulary.unknown == 3
    assert vocabulary.encode("man") == [1, 4, 2]
    assert vocabulary.ordinary == (4, 5)


def change(content: dict[str, Any], key: str, **entries: Any) -> dict[str, Any]:
    return content | {key: content[key] | entries}


GOOD = published("man", "dog")
BAD = [
    ([], r"word2idx, idx2word, idx missing \(found list\); expected an object with the keys"),
    ({"word2idx": {}}, r"idx2word, idx missing \(found the keys \['word2idx'\]\)"),
    (GOOD | {"word2idx": []}, "must both be JSON objects"),
    (change(GOOD, "word2idx", man=17), r"gives 'man' the id 17; expected whole numbers 0 \.\.\. 5"),
    (change(GOOD, "word2idx", man="4"), r"gives 'man' the id '4'; expected whole numbers"),
    (change(GOOD, "word2idx", man=True), r"gives 'man' the id True; expected whole numbers"),
    (change(GOOD, "word2idx", man=5), r"'man' the id 5, but idx2word\['5'\] is 'dog'"),
    (change(GOOD, "idx2word", **{"4": "dog"}), r"'man' the id 4, but idx2word\['4'\] is 'dog'"),
    (change(GOOD, "idx2word", **{"6": "cat"}), "idx2word has 7 words and word2idx 6"),
    (GOOD | {"idx": 7}, "idx is 7; expected 6"),
    (GOOD | {"idx": None}, "idx is None; expected 6"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_read_refuses(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Vocabulary.read(write(tmp_path / "v.json", content))
    assert str(tmp_path / "v.json") in str(caught.value)
    assert "Vocabulary.build(captions)" in str(caught.value)


def test_read_refuses_what_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_bytes(b"\x80\x03pickle")
    with pytest.raises(InputError, match=r"v.json is not JSON \(.*expected an object .* again"):
        Vocabulary.read(path)
    path.write_text("[" * 200_000)
    with pytest.raises(InputError, match="not JSON"):
        Vocabulary.read(path)


def test_read_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.json cannot be read \(No such file .*Check the path"):
        Vocabulary.read(tmp_path / "none.json")


def test_read_names_the_missing_specials(tmp_path: Path) -> None:
    words = ["<pad>", "<end>", "man"]
    content = {
        "word2idx": {word: k for k, word in enumerate(words)},
        "idx2word": {str(k): word for k, word in enumerate(words)},
        "idx": 3,
    }
    with pytest.raises(InputError, match=r"v.json: .*3 words without <start>, <unk>.*Add them, or build a new one"):
        Vocabulary.read(write(tmp_path / "v.json", content))


def test_padding_must_be_zero() -> None:
    with pytest.raises(InputError, match="<pad> has id 1; expected 0, because batches are padded with 0"):
        Vocabulary(("<start>", "<pad>", "<end>", "<unk>"))
    with pytest.raises(InputError, match="'a' occurs twice"):
        Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "a", "a"))


@pytest.mark.parametrize("word", ["नमस्ते", "สวัสดี", "naïve", "cafe\u0301", "привет", "東京"])
def test_marks_belong_to_the_word_they_stand_in(word: str) -> None:
    assert len(tokenise(f"a {word}, b")) == 3


def test_a_vocabulary_with_the_full_stop_reads_punctuation_as_words():
    """As the field's published vocabularies, which NLTK's word_tokenize made."""
    caption = "He isn't 1,000 years old. A dog's t-shirt; 1/2 cup (red)..."
    expected = "he is n't 1,000 years old . a dog 's t-shirt ; 1/2 cup ( red ) ..."
    assert " ".join(tokenise(caption, signs=True)) == expected
    published = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "old", ".", "n't"))
    assert published.encode("Old. Isn't!") == [1, 4, 5, 3, 6, 3, 2]
    assert Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "old", "n't")).encode("Old. Isn't!") == [1, 4, 3, 3, 2]
