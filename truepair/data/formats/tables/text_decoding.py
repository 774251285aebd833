"""Text of any origin: UTF-8, what a byte-order mark says, or Windows-1252, told apart line by line."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from truepair.data.collection import Problem
from truepair.errors import InputError
from truepair.files import open_file

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def marked_encoding(start: bytes) -> str | None:
    """The encoding that the byte-order mark at the start of a file names; None without one."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def decode(data: bytes) -> tuple[str, str]:
    """The text of some bytes, and the encoding they were in. Never fails: every byte is a letter of Latin-1."""
    encoding = marked_encoding(data) or "utf-8"
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        return _western(data), "windows-1252"


class TextLines:
    """The lines of a text file, their line ends included, one after the other and never all at once.

    Lines end at "\\n" only. Without a byte-order mark (`encoding`) each line is read as UTF-8, and where it is not, as
    Windows-1252: one pasted line does not spoil the others.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._odd: list[int] = []
        self._odd_count = 0
        try:
            with open_file(path) as file:
                self.encoding = marked_encoding(file.read(4)) or "utf-8"
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({error.strerror or error}); expected a table. Check the path and permissions"
            ) from error

    def __iter__(self) -> Iterator[str]:
        self._odd, self._odd_count = [], 0
        if self.encoding in ("utf-16", "utf-32"):
            with self.path.open(encoding=self.encoding, errors="replace", newline="\n") as text:
                for number, line in enumerate(text, start=1):
                    if "\ufffd" in line:
                        self._note(number)
                    yield line
            return
        with self.path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                data = data.removeprefix(codecs.BOM_UTF8) if number == 1 else data
                try:
                    yield data.decode("utf-8")
                except UnicodeDecodeError:
                    self._note(number)
                    # A mark in the middle of a file is no mark: only the two Western encodings are tried.
                    yield _western(data)

    def problems(self) -> list[Problem]:
        """That lines were not in the encoding of the file, once it was read to the end."""
        if not self._odd_count:
            return []
        lines = ", ".join(map(str, self._odd)) + (", …" if self._odd_count > len(self._odd) else "")
        if self.encoding in ("utf-16", "utf-32"):
            what = f"holds bytes that are not {self.encoding.upper()} in {self._odd_count} lines ({lines}), shown as �"
        else:
            what = f"is not UTF-8 in {self._odd_count} lines ({lines}), which were read as Windows-1252"
        detail = f"the table {what}; look whether their accents are right, and save it as UTF-8"
        return [Problem(self.path.name, self.path.name, -1, "encoding", detail, used=True)]

    def _note(self, number: int) -> None:
        self._odd_count += 1
        if len(self._odd) < 5:
            self._odd.append(number)


def _western(data: bytes) -> str:
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")
