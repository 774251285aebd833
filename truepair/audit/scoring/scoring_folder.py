"""The folder in which a collection of embeddings is scored: what was asked for, the bank, and a file a chunk.

    scoring.json              fingerprint of the collection and options; another audit is refused
    bank.safetensors          the reference pairs
    null.safetensors          scores of pairs known to be mismatched
    chunks/000000.safetensors scores of the first `chunk_rows` rows, …

Every file is written whole or not at all, and one that exists is never computed again: whatever kills an audit, the
next one goes on, and ends with the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import read_columns
from truepair.data.pairs import Array
from truepair.errors import InputError, TruepairError
from truepair.files import write_bytes_atomically, write_json_atomically

RECIPE = 2
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

    def begin(self, asked: dict[str, Any]) -> None:
        """Start here, or go on with what was begun for the same collection and options.

        Raises:
            InputError: the folder holds the scores of another collection or of other options; the message says what
                differs.
            TruepairError: it cannot be written to.
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
        try:
            self._chunks.mkdir(parents=True, exist_ok=True)
            for unfinished in (*self.path.glob(".*.tmp"), *self._chunks.glob(".*.tmp")):
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise TruepairError(
                f"{self.path} cannot be written to ({error.strerror or error}); choose a folder that can"
            ) from error
        write_json_atomically(header, wanted)

    def header(self) -> dict[str, Any]:
        """What `scoring.json` says.

        Raises:
            InputError: it is missing or damaged.
        """
        path = self.path / "scoring.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read ({error}); expected a folder in which an audit scores") from error
        if not isinstance(found, dict) or found.get("recipe") != RECIPE:
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
    def null(self) -> Path:
        return self.path / "null.safetensors"

    @property
    def has_bank(self) -> bool:
        return self._bank.exists()

    def keep_bank(self, bank: Bank) -> None:
        columns = {name: getattr(bank, name).numpy() for name in ("images", "texts", "rows", "trust")}
        columns["constants"] = np.array(
            [bank.temperature, bank.background, bank.neighbours, bank.same], dtype=np.float64
        )
        write_bytes_atomically(self._bank, save(columns))

    def bank(self) -> Bank:
        columns = {name: torch.from_numpy(values) for name, values in self.columns(self._bank).items()}
        temperature, background, neighbours, same = columns.pop("constants").tolist()
        return Bank(**columns, temperature=temperature, background=background, neighbours=int(neighbours), same=same)

    def columns(self, path: Path) -> dict[str, Array]:
        """The columns of one of the files.

        Raises:
            InputError: it is missing or damaged.
        """
        try:
            return read_columns(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); expected what an audit wrote. Delete the file, and run the same "
                "audit again: it scores only what is missing"
            ) from error

    @property
    def _bank(self) -> Path:
        return self.path / "bank.safetensors"

    @property
    def _chunks(self) -> Path:
        return self.path / "chunks"
