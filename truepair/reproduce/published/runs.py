"""Rows of published tables as cells that run: one training a network and seed, shared by all rows that need it."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import DivergedError
from truepair.files import read_file
from truepair.reproduce.cells import Cell, Places, Record, train
from truepair.reproduce.processes import truepair
from truepair.reproduce.published.configurations import Configuration, NotBuilt, configuration_of
from truepair.reproduce.published.data_sets import DataSet, read_data_sets
from truepair.reproduce.published.noise_files import index_in
from truepair.reproduce.published.printed import RECALLS, PrintedRow, PrintedTable
from truepair.reproduce.published.weights import Weights
from truepair.reproduce.training import cost_of, methods_of, told
from truepair.training.run_folder import RunFolder

NOT_OF_PICTURES = (
    "the field's index files number the captions of its features, not of pictures; leave out --noise-index"
)


@dataclass(frozen=True)
class Plan:
    """What a row needs to be run.

    Attributes:
        noise: options of `truepair train` that make the noise.
        index: the index file among them, if any.
        weights: what training begins with, or what is scored as it is; None: drawn anew.
        known: the file of pairs that are known to match; None where none is needed.
    """

    row: PrintedRow
    configuration: Configuration
    data: DataSet
    source: Path
    noise: tuple[str, ...]
    index: Path | None
    weights: Weights | None = None
    known: Path | None = None

    def words(self, network: str, seed: int, *, named: bool = False) -> list[str]:
        """Options of `truepair train` of one network, beside the data.

        Args:
            named: weights, index and vocabulary by their content, wherever they lie, as runs and records know them.
        """
        given = [*self.noise, *self.data.train_options(self.source), *self.data.vocabulary_options(self.source)]
        given += [] if self.known is None else ["--clean-pairs", str(self.known)]
        if named:
            given = [str(self.files.get(word, word)) for word in given]
        if self.weights is not None:
            given += ["--encoder", self.weights.identity if named else str(self.weights.folder)]
        return [*network.split(), *given, "--seed", str(seed)]

    @property
    def files(self) -> dict[str, str]:
        """Path → name with a digest of the content, of the index, the vocabulary and the known pairs that are read."""
        read = [path for path in (self.index, self.data.vocabulary(self.source), self.known) if path is not None]
        return {str(path): f"{path.stem}-{digest_of(path)[:8]}{path.suffix}" for path in read}

    def cells(self, seeds: Sequence[int]) -> list[Cell]:
        """One a seed; what is not trained has none."""
        return [self.cell(seed) for seed in seeds] if self.configuration.networks else [self.cell_of_weights()]

    def cell(self, seed: int) -> Cell:
        row = self.row
        facts = {"data": row.data, "method": row.method, "noise": row.rate, "seed": seed}
        name = f"{row.data}-{row.rate}-{slug(row.method)}-seed{seed}"
        parts = [
            " ".join(["truepair train", self.data.name, *self.words(n, seed, named=True)])
            for n in self.configuration.networks
        ]
        return Cell(name, facts, "; ".join(parts), lambda places: self.measure(places, seed))

    def cell_of_weights(self) -> Cell:
        """The weights as they are, without a run."""
        row, weights = self.row, self.weights
        assert weights is not None
        facts = {"data": row.data, "method": row.method, "noise": row.rate}
        command = f"truepair evaluate {weights.identity} {self.data.name} {self.data.score[row.data]}"
        name = f"{row.data}-{row.rate}-{slug(row.method)}"
        return Cell(name, facts, command, lambda places: self.scored([weights.folder]))

    def run_name(self, network: str, seed: int) -> str:
        """A name for the run of a network: equal options are one run, in whichever table."""
        words = self.words(network, seed, named=True)
        digest = hashlib.sha256(" ".join(words).encode()).hexdigest()[:8]
        method = words[words.index("--method") + 1]
        return f"{self.data.name}-{method}-{self.row.rate}-seed{seed}-{digest}"

    def measure(self, places: Places, seed: int) -> Record:
        """Train what is missing, then score the networks together. Where one diverged there are no figures."""
        runs = []
        for network in self.configuration.networks:
            path = places.runs / self.run_name(network, seed)
            try:
                runs.append(train(str(self.source), self.words(network, seed), path))
            except DivergedError as error:
                runs.append(RunFolder(path))
                return {**told(error, path), "runs": [run.path.name for run in runs], **cost_of(runs)}
        if self.data.layout == "labelled":
            test = json.loads(runs[0].result.read_text(encoding="utf-8"))["test"]
            scored: Record = {"figures": {"i2t_map": test["map_i2t"], "t2i_map": test["map_t2i"]}}
        else:
            scored = self.scored([run.path for run in runs])
        results = [json.loads(run.result.read_text(encoding="utf-8")) for run in runs]
        # Where training has scored the same split in the same way, what each network reaches by itself is known.
        known = len(runs) > 1 and self.data.score[self.row.data] == "--split test"
        members = [
            {"model": run.read_config()["model"]["name"], "rsum": result["test"]["rsum"]}
            for run, result in zip(runs, results, strict=True)
            if known
        ]
        return {
            **scored,
            **({"members": members} if members else {}),
            "runs": [run.path.name for run in runs],
            **methods_of(runs),
            "realised_noise": results[0].get("mismatch_rate"),
            "index": None if self.index is None else digest_of(self.index),
            **cost_of(runs),
        }

    def scored(self, models: Sequence[Path]) -> Record:
        """The recalls of runs, or of weights, answering together."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            score = self.data.score[self.row.data].split()
            truepair("evaluate", *map(str, models), str(self.source), *score, "--json", str(file))
            found = json.loads(file.read_text(encoding="utf-8"))
        begun = {} if self.weights is None else {"weights": self.weights.identity}
        return {"figures": {name: found[name] for name in (*RECALLS, "rsum")}, **begun}


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(read_file(path)).hexdigest()


def plans(
    table: PrintedTable,
    rows: Sequence[PrintedRow],
    sources: dict[str, Path],
    index: Path | None = None,
    weights: dict[str, Weights] | None = None,
    known: Path | None = None,
) -> Iterator[Plan | tuple[PrintedRow, str]]:
    """A plan for each row, or the row and why it is not run.

    Args:
        sources: data set → where it lies.
        index: folder of the field's index files; None: noise is drawn by the seed.
        weights: size of CLIP → the weights of it.
        known: a file of pairs that are known to match, for the rows that need one.

    Raises:
        InputError: an index file is missing or of something else.
    """
    for row in rows:
        found = configuration_of(table, row)
        if isinstance(found, NotBuilt):
            yield row, f"not built: {found.reason}"
            continue
        source = sources.get(found.data)
        begun = (weights or {}).get(found.weights)
        if source is None:
            yield row, f"no data: {found.data}"
        elif found.weights and begun is None:
            yield row, f"no weights: CLIP ViT-{found.weights}"
        elif found.known and known is None:
            yield row, "no known pairs: give a file of training pairs that are known to match (--clean-pairs)"
        elif index is not None and row.noise and found.weights:
            yield row, NOT_OF_PICTURES
        else:
            data = read_data_sets()[found.data]
            given = known.absolute() if found.known and known is not None else None
            yield Plan(row, found, data, source.absolute(), *noise_of(table, row, data, index), begun, given)


def noise_of(
    table: PrintedTable, row: PrintedRow, data: DataSet, index: Path | None
) -> tuple[tuple[str, ...], Path | None]:
    """Options that make the noise of a row, and the index file among them."""
    if not row.noise:
        return (), None
    if table.shuffled == "labels":
        return ("--label-noise", f"{row.noise:g}"), None
    if index is not None:
        path = index_in(index, data, row.noise, table.shuffled).absolute()
        return ("--noise-index", str(path)), path
    kind = "image" if table.shuffled == "images" else "caption"
    return ("--noise", f"{row.noise:g}", "--noise-kind", kind), None


def slug(method: str) -> str:
    """A printed name as part of a file's: `SGR*` → `sgr-star`."""
    return re.sub(r"[^a-z0-9]+", "-", method.lower().replace("*", " star")).strip("-")
