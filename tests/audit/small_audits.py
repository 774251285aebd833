"""Audits of a few dozen pairs, each within seconds."""

import json
from pathlib import Path

import numpy as np
from pyarrow import parquet

from tests.data.formats.made_pictures import write_pictures
from truepair.audit import AuditOptions, CrossFitting
from truepair.cli.main import main

QUICK = ["--epochs", "2", "--width", "16", "--folds", "2", "--bank", "64", "--quiet"]
QUICK_OPTIONS = {"options": AuditOptions(bank=64), "crossfit": CrossFitting(folds=2, epochs=2, width=16)}
FILES = {"pairs.parquet", "summary.json", "report.html", "problems.parquet", "duplicates.parquet", "faults.parquet"}
WORDS = ("red", "blue", "green", "round", "square", "large", "small", "striped", "cat", "dog", "tree", "house", "boat")


def run_cli(data: object, out: Path, *options: str) -> int:
    return main(["audit", str(data), "--out", str(out), *options])


def rows_of(folder: Path, name: str = "pairs.parquet") -> list[dict[str, object]]:
    return parquet.read_table(folder / name).to_pylist()


def kept_of(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Those that an export keeps."""
    return [row for row in rows if not row["flagged"] and row["p_match"] >= AuditOptions().keep]


def summary_of(folder: Path) -> dict[str, object]:
    return json.loads((folder / "summary.json").read_text())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_picture_folder(folder: Path, count: int) -> list[tuple[str, str]]:
    """Pictures of noise with captions of four words; (file, caption) of each. No table is written."""
    write_pictures(folder, count)
    rng = np.random.default_rng(0)
    return [(f"p{k}.png", " ".join(rng.choice(WORDS, 4, replace=False))) for k in range(count)]


def write_embeddings(folder: Path, images: np.ndarray, texts: np.ndarray) -> str:
    """Two arrays; the source that means both."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "img.npy", images)
    np.save(folder / "txt.npy", texts)
    return f"{folder / 'img.npy'},{folder / 'txt.npy'}"
