"""The glossary: few terms, each with a source, each in use."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_TERMS = 25


def rows(text):
    """(terms, meaning, source) of every row; a row may explain two terms at once."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "| **" in line]
    return [(cell[0].strip("*").split(", "), *cell[1:]) for cell in cells]


GLOSSARY = rows((ROOT / "docs" / "glossary.md").read_text("utf-8"))


def in_use():
    """What people read: the documents, the package with its help and its pages; the glossary itself left out."""
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    files += [path for path in (ROOT / "truepair").rglob("*") if path.suffix in (".py", ".html", ".toml")]
    return " ".join(" ".join(path.read_text("utf-8") for path in files if path.name != "glossary.md").split()).lower()


def test_there_are_few_terms_in_order():
    assert 10 <= len(GLOSSARY) <= MOST_TERMS
    names = [terms[0].lower() for terms, _, _ in GLOSSARY]
    assert names == sorted(names)
    assert len({term for terms, _, _ in GLOSSARY for term in terms}) == sum(len(terms) for terms, _, _ in GLOSSARY)


@pytest.mark.parametrize("row", GLOSSARY, ids=lambda row: row[0][0])
def test_every_term_is_short_and_has_a_source(row):
    _, meaning, source = row
    assert len(re.split(r"[.:;] ", meaning)) <= 4 and len(meaning) <= 300
    assert re.search(r"\b(19|20)\d\d\b", source), "the year of a paper"


def test_every_term_is_in_use():
    text = in_use()
    assert [term for terms, _, _ in GLOSSARY for term in terms if term.lower() not in text] == []
