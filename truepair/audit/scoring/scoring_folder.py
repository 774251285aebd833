"""The folder in which a collection of embeddings is scored: what was asked for, the bank, and a file a chunk.

    scoring.json              fingerprint of the collection and options; another audit is refused
    bank.safetensors          the reference pairs
    chunks/000000.safetensors scores of the first `chunk_rows` rows, …

Every file is written whole or not at all, and one that exists is never computed again: whatever kills an audit, the
next one goes on, and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import COLUMNS
from truepair.audit.scoring.other_captions import OTHERS
from truepair.data.collection import EmbeddingCollection, Problem
from truepair.data.embedding_rows import UNUSABLE
from truepair.data.pairs import Array, IntArray
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


class ScoringFolder:
    """Names and files of such a folder. What reads one raises InputError where it is missing or damaged."""

    def __init__(self, path: Path) -> None:
        self.path, self._header, self._chunks = path, path / "scoring.json", path / "chunks"
        self.bank_file = path / "bank.safetensors"

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Within the block this process alone writes here; what a kill left of files in the making is removed.

        A RunFolderError where another process does, or the folder cannot be written to.
        """
        with locked(self.path, self._chunks / "lock"):
            clear_leftovers(self.path, self._chunks)
            yield

    def begin(self, asked: dict[str, Any]) -> None:
        """Start here, or go on with what was begun for the same collection and options; an InputError says what
        differs.
        """
        wanted = {"recipe": RECIPE, **asked}
        found = self.header() if self._header.exists() else wanted
        for name in wanted:
            if found.get(name) != wanted[name]:
                raise InputError(
                    f"{self.path} holds scores of another audit: {name} is {found.get(name)!r}, now "
                    f"{wanted[name]!r}. Choose another folder, or delete this one"
                )
        write_json_atomically(self._header, wanted)

    def header(self) -> dict[str, Any]:
        """What `scoring.json` says."""
        found = read_json_object(self._header, "what an audit wrote")
        if found.get("recipe") != RECIPE:
            raise InputError(
                f"{self._header} was written by another version of truepair; delete the folder and audit again"
            )
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

    def keep_bank(self, bank: Bank) -> None:
        columns = {name: getattr(bank, name).numpy() for name in ("images", "texts", "rows", "trust")}
        columns["constants"] = np.array(
            [bank.temperature, bank.background, bank.neighbours, bank.same], dtype=np.float64
        )
        write_bytes_atomically(self.bank_file, tensor_bytes(columns))

    def bank(self) -> Bank:
        columns = {name: torch.from_numpy(values) for name, values in self.columns(self.bank_file).items()}
        temperature, background, neighbours, same = columns.pop("constants").tolist()
        return Bank(**columns, temperature=temperature, background=background, neighbours=int(neighbours), same=same)

    def columns(self, path: Path) -> dict[str, Array]:
        """The columns of one of the files."""
        remedy = "what an audit wrote. Delete the file, and run the same audit again: it scores only what is missing"
        return {name: values.numpy() for name, values in read_tensors(path, remedy)[0].items()}


@dataclass(frozen=True)
class Scored:
    """A scored collection.

    Attributes:
        rows: (M,) int64, the rows of the collection that could be scored, ascending.
        columns: `indicators.COLUMNS`, (M,) float32 each.
        unusable, reasons: (U,) the rows that could not be scored, ascending, and why, of `UNUSABLE`.
    """

    folder: Path
    rows: IntArray
    columns: dict[str, Array]
    unusable: IntArray
    reasons: list[str]

    def bank(self) -> Bank:
        """The bank all were compared with."""
        return ScoringFolder(self.folder).bank()

    def problems(self, collection: EmbeddingCollection) -> list[Problem]:
        """The unusable rows as entries of the list of problems."""
        found = []
        for row, reason in zip(self.unusable.tolist(), self.reasons, strict=True):
            detail = f"{UNUSABLE[reason]}; embed this pair again"
            found.append(Problem(collection.ids(row, row + 1)[0], *collection.place(row), reason, detail))
        return found


def open_scored(folder: Path | str) -> Scored:
    """The scores of a finished folder; 40 bytes of memory a pair. An InputError where the folder is none, a chunk is
    missing or damaged.
    """
    place = ScoringFolder(Path(folder))
    spans, places = place.spans(), {"rows": 0, "unusable": 0}
    kinds = dict.fromkeys(("rows", *COLUMNS), "rows") | dict.fromkeys(("unusable", "reason"), "unusable")
    whole: dict[str, Array] = {}  # room for all, where each chunk is put: never two copies of the whole
    for span in spans:
        columns = place.columns(place.chunk(span))
        for name, kind in kinds.items():
            if name not in whole:
                whole[name] = np.empty(spans[-1].stop, dtype=columns[name].dtype)
            whole[name][places[kind] : places[kind] + len(columns[name])] = columns[name]
        for kind in places:
            places[kind] += len(columns[kind])
    found = {name: whole[name][: places[kind]] for name, kind in kinds.items()}
    return Scored(
        place.path,
        found["rows"],
        {name: found[name] for name in COLUMNS},
        found["unusable"],
        [list(UNUSABLE)[reason] for reason in found["reason"].tolist()],
    )


def kept_columns(path: Path, score: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Array]:
    """The `COLUMNS` and `OTHERS` in a file, in this order; scored if it is missing."""
    if not path.exists():
        write_bytes_atomically(path, tensor_bytes(score(*arguments)))
    found, _ = read_tensors(path, "what an audit wrote. Delete the file, and run the same audit again")
    return {name: found[name].numpy() for name in (*COLUMNS, OTHERS) if name in found}
