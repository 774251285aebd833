"""Rows of published tables as cells that run: one training a network and seed, shared by all rows that need it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from truepair.files import read_file
from truepair.reproduce.cells import Cell, Places, Record, train, truepair
from truepair.reproduce.published.configurations import Configuration, NotBuilt, configuration_of, source_of
from truepair.reproduce.published.data_sets import DataSet, index_in, read_data_sets
from truepair.reproduce.published.printed import RECALLS, PrintedRow, PrintedTable
from truepair.reproduce.training import cost_of


@dataclass(frozen=True)
class Plan:
    """What a row needs to be run.

    Attributes:
        noise: options of `truepair train` that make the noise.
        index: the index file among them, if any.
    """

    row: PrintedRow
    configuration: Configuration
    data: DataSet
    source: Path
    noise: tuple[str, ...]
    index: Path | None

    def words(self, network: str, seed: int) -> list[str]:
        """Options of `truepair train` of one network, beside the data."""
        given = [*self.noise, *self.data.train_options(self.source), *self.data.vocabulary_options(self.source)]
        return [*network.split(), *given, "--seed", str(seed)]

    def cell(self, seed: int) -> Cell:
        row = self.row
        facts = {"data": row.data, "method": row.method, "noise": row.rate, "seed": seed}
        name = f"{row.data}-{row.rate}-{slug(row.method)}-seed{seed}"
        parts = [
            " ".join(["truepair train", self.data.name, *self.words(n, seed)]) for n in self.configuration.networks
        ]
        return Cell(name, facts, "; ".join(parts), lambda places: self.measure(places, seed))

    def run_name(self, network: str, seed: int) -> str:
        """A name for the run of a network: equal options are one run, in whichever table."""
        words = self.words(network, seed)
        content = b"" if self.index is None else read_file(self.index)
        digest = hashlib.sha256(" ".join(words).encode() + content).hexdigest()[:8]
        method = words[words.index("--method") + 1]
        return f"{self.data.name}-{method}-{self.row.rate}-seed{seed}-{digest}"

    def measure(self, places: Places, seed: int) -> Record:
        """Train what is missing, then score the networks together."""
        runs = []
        for network in self.configuration.networks:
            path = places.runs / self.run_name(network, seed)
            with alone(path):
                runs.append(train(str(self.source), self.words(network, seed), path))
        if self.data.layout == "labelled":
            test = json.loads(runs[0].result.read_text(encoding="utf-8"))["test"]
            figures = {"i2t_map": test["map_i2t"], "t2i_map": test["map_t2i"]}
        else:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "figures.json"
                score = self.data.score[self.row.data].split()
                truepair("evaluate", *(str(run.path) for run in runs), str(self.source), *score, "--json", str(file))
                found = json.loads(file.read_text(encoding="utf-8"))
            figures = {name: found[name] for name in (*RECALLS, "rsum")}
        results = [json.loads(run.result.read_text(encoding="utf-8")) for run in runs]
        return {
            "figures": figures,
            "runs": [run.path.name for run in runs],
            "realised_noise": results[0].get("mismatch_rate"),
            "index": None if self.index is None else hashlib.sha256(read_file(self.index)).hexdigest(),
            **cost_of(runs),
        }


@contextmanager
def alone(run: Path) -> Iterator[None]:
    """Within the block no other row trains this run; whoever comes second waits, and finds it finished."""
    run.parent.mkdir(parents=True, exist_ok=True)
    with run.with_name(f".{run.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def plans(
    table: PrintedTable, rows: Sequence[PrintedRow], sources: dict[str, Path], index: Path | None = None
) -> Iterator[Plan | tuple[PrintedRow, str]]:
    """A plan for each row, or the row and why it is not run.

    Args:
        sources: data set → where it lies.
        index: folder of the field's index files; None: noise is drawn by the seed.

    Raises:
        InputError: an index file is missing or of something else.
    """
    for row in rows:
        found = configuration_of(table, row)
        source = sources.get(source_of(row))
        if isinstance(found, NotBuilt):
            yield row, f"not built: {found.reason}"
        elif source is None:
            yield row, f"no data: {source_of(row)}"
        else:
            data = read_data_sets()[source_of(row)]
            yield Plan(row, found, data, source, *noise_of(table, row, data, index))


def noise_of(
    table: PrintedTable, row: PrintedRow, data: DataSet, index: Path | None
) -> tuple[tuple[str, ...], Path | None]:
    """Options that make the noise of a row, and the index file among them."""
    if not row.noise:
        return (), None
    if table.shuffled == "labels":
        return ("--label-noise", f"{row.noise:g}"), None
    if index is not None:
        path = index_in(index, data, row.noise, table.shuffled)
        return ("--noise-index", str(path)), path
    kind = "image" if table.shuffled == "images" else "caption"
    return ("--noise", f"{row.noise:g}", "--noise-kind", kind), None


def slug(method: str) -> str:
    """A printed name as part of a file's: `SGR*` → `sgr-star`."""
    return re.sub(r"[^a-z0-9]+", "-", method.lower().replace("*", " star")).strip("-")
