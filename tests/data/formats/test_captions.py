from collections.abc import Sequence

import numpy as np
import pytest

from truepair.data import caption_checks
from truepair.data.caption_checks import caption_problems, script_of
from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.tables.drafts import LONGEST_CAPTION, read_caption
from truepair.data.formats.tables.text_decoding import decode
from truepair.data.pairs import Images, Pairs, Texts


@pytest.mark.parametrize(
    ("value", "text", "reason"),
    [
        ("  a \n red\t cat ", "a red cat", ""),
        ("", "", "empty-caption"),
        (" \n\u3000", "", "empty-caption"),
        ("\u200b \ufeff", "", "empty-caption"),
        (None, "", "caption-not-text"),
        (12, "", "caption-not-text"),
        (["a"], "", "caption-not-text"),
        ("x" * LONGEST_CAPTION, "x" * LONGEST_CAPTION, ""),
        ("y" * 100_000, "y" * LONGEST_CAPTION, "long-caption"),
        ("lone \ud800 surrogate", "lone ? surrogate", ""),
    ],
)
def test_read_caption(value: object, text: str, reason: str) -> None:
    caption = read_caption(value)
    assert (caption.text, caption.reason) == (text, reason)
    assert bool(caption.detail) == bool(reason)
    caption.text.encode("utf-8")


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("café".encode(), "café", "utf-8"),
        ("café".encode("utf-8-sig"), "café", "utf-8-sig"),
        ("café".encode("cp1252"), "café", "windows-1252"),
        ("café".encode("utf-16"), "café", "utf-16"),
        ("café".encode("utf-32"), "café", "utf-32"),
        (b"\x81\xe9", "\x81é", "windows-1252"),
        (b"", "", "utf-8"),
    ],
)
def test_decode(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)


@pytest.mark.parametrize(
    ("caption", "script"),
    [
        ("a red cat", "Latin"),
        ("Ein Kätzchen, größer", "Latin"),
        ("кот на крыше", "Cyrillic"),
        ("屋顶上的猫", "Chinese or Japanese"),
        ("屋根の上のネコ", "Chinese or Japanese"),
        ("지붕 위의 고양이", "Hangul"),
        ("छत पर बिल्ली", "Devanagari"),
        ("แมวบนหลังคา", "Thai"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "Latin"),
        ("a cat, see https://example.org/cat?id=123456789", "Latin"),
        ("model 501 in blue, size 32/34", "Latin"),
        ("OK", "Latin"),
        ("IMG_1234.jpg", "(no words)"),
        ("DSC00017", "(no words)"),
        ("my-holiday_in-rome.JPEG", "(no words)"),
        ("https://example.org/a/very/long/path", "(no words)"),
        ("www.example.org", "(no words)"),
        ("someone@example.org", "(no words)"),
        ("(see: HTTPS://example.org/a).", "Latin"),
        ("<www.example.org>, IMG_20240101_1234", "(no words)"),
        ("12345", "(no words)"),
        ("???  !!", "(no words)"),
        ("0123456789 a", "(no words)"),
        (" \t", "(empty)"),
    ],
)
def test_script_of(caption: str, script: str) -> None:
    assert script_of(caption) == script


def of_words(captions: Sequence[str], *, vectors: bool = False) -> PairsCollection:
    count = len(captions)
    ids = tuple(f"id{k}" for k in range(count))
    index = np.arange(count, dtype=np.int64)
    images = Images(np.zeros((count, 4), dtype=np.float32), ids)
    texts = Texts(tuple(captions), ids, np.ones((count, 3), dtype=np.float32) if vectors else None)
    return PairsCollection(Pairs(images, texts, index, index, pair_ids=ids, source_rows=10 * index))


def test_foreign_and_empty_captions_are_listed_and_used() -> None:
    captions = ["a cat on a roof"] * 20 + ["屋顶上的猫", "IMG_0001.jpg", " ", "", "a dog"]
    problems = caption_problems(of_words(captions))
    assert [(problem.entry, problem.row, problem.reason) for problem in problems] == [
        ("id20", 200, "foreign-caption"), ("id21", 210, "foreign-caption"),
        ("id22", 220, "empty-caption"), ("id23", 230, "empty-caption"),
    ]  # fmt: skip
    assert all(problem.used for problem in problems)
    assert "屋顶上的猫" in problems[0].detail and "Latin" in problems[0].detail


def test_one_foreign_caption_among_very_few() -> None:
    assert [problem.row for problem in caption_problems(of_words(["a cat", "a dog", "猫"]))] == [20]


def test_a_collection_of_two_languages_has_no_foreign_one() -> None:
    assert caption_problems(of_words(["a cat"] * 20 + ["кот"] * 10)) == []
    assert len(caption_problems(of_words(["a cat"] * 40 + ["кот"] * 10))) == 10


def test_the_majority_is_the_collections_own() -> None:
    assert [problem.row for problem in caption_problems(of_words(["猫"] * 20 + ["a cat"]))] == [200]


def test_collections_without_words_have_no_bad_ones() -> None:
    assert caption_problems(of_words([""] * 5)) == []
    assert caption_problems(of_words(["12", "13"], vectors=True)) == []
    assert [problem.entry for problem in caption_problems(of_words(["", "", "", "17", "a cat"]))] == ["id3"]
    assert caption_problems(of_words([])) == []


def test_captions_are_read_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caption_checks, "_RANGE", 7)

    class Streamed(Collection):
        name, problems = "streamed", ()

        def __len__(self) -> int:
            return 50

        def ids(self, start: int, stop: int) -> list[str]:
            return [f"s{row}" for row in range(start, stop)]

        def captions(self, start: int, stop: int) -> list[str]:
            assert 0 <= start < stop <= len(self) and stop - start <= 7
            return ["12:30" if row in (0, 6, 7, 49) else "a cat" for row in range(start, stop)]

        def place(self, row: int) -> tuple[str, int]:
            return "file.npy", row + 5

    problems = caption_problems(Streamed())
    assert [(problem.entry, problem.file, problem.row) for problem in problems] == [
        (f"s{row}", "file.npy", row + 5) for row in (0, 6, 7, 49)
    ]
