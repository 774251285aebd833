"""The folder in which a collection of embeddings is scored: what was asked for, the bank, and a file a chunk.

    scoring.json              fingerprint of the collection and options; another audit is refused
    bank.safetensors          the reference pairs
    chunks/000000.safetensors scores of the first `chunk_rows` rows, …

Every file is written whole or not at all, and one that exists is never computed again: whatever kills an audit, the
next one goes on, and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from truepair.audit.scoring.bank import Bank
from truepair.data.pairs import Array
from truepair.errors import InputError
from truepair.files import (
    clear_leftovers,
    locked,
    read_json_object,
    read_tensors,
    tensor_bytes,
    write_bytes_atomically,
    write_json_atomically,
)

RECIPE = 3
"""Counts changes to what the files hold."""


@dataclass(frozen=True)
class Span:
    """Chunk `number`: the rows [start, stop)."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True)
class ScoringFolder:
    """Names and files of such a folder."""

    path: Path

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Within the block this process alone writes here; what a kill left of files in the making is removed.

        Raises:
            RunFolderError: another process does, or the folder cannot be written to.
        """
        with locked(self.path, self._chunks / "lock"):
            clear_leftovers(self.path, self._chunks)
            yield

    def begin(self, asked: dict[str, Any]) -> None:
        """Start here, or go on with what was begun for the same collection and options.

        Raises:
            InputError: the folder holds the scores of another collection or of other options; the message says what
                differs.
        """
        wanted = {"recipe": RECIPE, **asked}
        header = self.path / "scoring.json"
        if header.exists():
            found = self.header()
            for name in wanted:
                if found.get(name) != wanted[name]:
                    raise InputError(
                        f"{self.path} holds scores of another audit: {name} is {found.get(name)!r}, now "
                        f"{wanted[name]!r}. Choose another folder, or delete this one"
                    )
        write_json_atomically(header, wanted)

    def header(self) -> dict[str, Any]:
        """What `scoring.json` says.

        Raises:
            InputError: it is missing or damaged.
        """
        path = self.path / "scoring.json"
        found = read_json_object(path, "what an audit wrote")
        if found.get("recipe") != RECIPE:
            raise InputError(f"{path} was written by another version of truepair; delete the folder and audit again")
        return found

    def spans(self) -> list[Span]:
        """All chunks, in order."""
        header = self.header()
        pairs, rows = int(header["pairs"]), int(header["chunk_rows"])
        return [Span(number, start, min(start + rows, pairs)) for number, start in enumerate(range(0, pairs, rows))]

    def missing(self) -> list[Span]:
        """The chunks still to be scored."""
        return [span for span in self.spans() if not self.chunk(span).exists()]

    def chunk(self, span: Span) -> Path:
        return self._chunks / f"{span.number:06d}.safetensors"

    def keep_chunk(self, span: Span, data: bytes) -> None:
        write_bytes_atomically(self.chunk(span), data)

    @property
    def has_bank(self) -> bool:
        return self._bank.exists()

    def keep_bank(self, bank: Bank) -> None:
        columns = {name: getattr(bank, name).numpy() for name in ("images", "texts", "rows", "trust")}
        columns["constants"] = np.array(
            [bank.temperature, bank.background, bank.neighbours, bank.same], dtype=np.float64
        )
        write_bytes_atomically(self._bank, tensor_bytes(columns))

    def bank(self) -> Bank:
        columns = {name: torch.from_numpy(values) for name, values in self.columns(self._bank).items()}
        temperature, background, neighbours, same = columns.pop("constants").tolist()
        return Bank(**columns, temperature=temperature, background=background, neighbours=int(neighbours), same=same)

    def columns(self, path: Path) -> dict[str, Array]:
        """The columns of one of the files.

        Raises:
            InputError: it is missing or damaged.
        """
        remedy = "what an audit wrote. Delete the file, and run the same audit again: it scores only what is missing"
        return {name: values.numpy() for name, values in read_tensors(path, remedy)[0].items()}

    @property
    def _bank(self) -> Path:
        return self.path / "bank.safetensors"

    @property
    def _chunks(self) -> Path:
        return self.path / "chunks"
