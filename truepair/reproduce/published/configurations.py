"""A printed row → how it is run with its paper's settings, or why it cannot be."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from truepair.methods import METHODS
from truepair.reproduce.published.checks import method_of
from truepair.reproduce.published.printed import FOLDER, PrintedRow, PrintedTable

SOURCES = {"coco1k": "coco", "coco5k": "coco"}
"""Data of the tables that are one data set, scored differently."""

FEATURES_OF_CLIP = "its features of CLIP are not distributed; extract them, and train on them by hand"


@dataclass(frozen=True)
class Configuration:
    """How a row is run.

    Attributes:
        data: the data set it runs on.
        networks: options of `truepair train` beside data, noise and seed, of each run; several answer together. None
            at all: the weights are scored as they are.
        remark: what had to be chosen where the print is silent; "" for nothing.
        weights: the size of CLIP that it begins with; "" where weights are drawn anew.
        known: it needs a file of pairs that are known to match.
    """

    data: str
    networks: tuple[str, ...]
    remark: str = ""
    weights: str = ""
    known: bool = False


@dataclass(frozen=True)
class NotBuilt:
    """Why a row cannot be run."""

    reason: str


def source_of(row: PrintedRow) -> str:
    """The data set of a row, however it is scored: `coco` of `coco1k` and `coco5k`."""
    return SOURCES.get(row.data, row.data)


def configuration_of(table: PrintedTable, row: PrintedRow) -> Configuration | NotBuilt:
    """How a row of a table is run with the paper's settings for its data and noise rate."""
    spec = _spec()
    method = method_of(row)
    if (not row.note and table.shuffled != "labels") or table.name == "uot-rcl-4":
        method = f"{row.paper} {row.number}: {row.method}"
        if method not in spec["ours"]:
            return NotBuilt("an ablation that no option expresses")
    if row.method.startswith("CLIP") and table.shuffled == "labels":
        return NotBuilt(FEATURES_OF_CLIP)
    if row.data == "nuswide":
        return NotBuilt("the paper's random 102,000 pairs of NUS-WIDE are not distributed")
    if method in spec["clip"]["sizes"]:
        return _of_clip(row, spec)
    if method not in spec["ours"]:
        return NotBuilt(spec["not_built"].get(method, "no such method here"))
    known = method == "MSCN" and source_of(row) not in spec["clean"]
    words = {
        "clean": "" if known else f"--clean-pairs {spec['clean'].get(source_of(row), '')}",
        "sgr": f"{spec['base']['sgraf']} --model sgr {spec['length']['sgr'].get(source_of(row), '')}",
        "saf": f"{spec['base']['sgraf']} --model saf {spec['length']['saf'].get(source_of(row), '')}",
        "vse": spec["base"]["vse"],
    }
    epochs = words["sgr"].split("--epochs ")[1].split()[0] if "--epochs" in words["sgr"] else "1"
    words["sgr-all"] = words["sgr"].replace("--triplet-warm-up-epochs 0", f"--triplet-warm-up-epochs {epochs}")
    networks = [line.format(**words) for line in spec["ours"][method]]
    name = method_of(row)
    remarks = (spec["remarks"].get(name), spec["remarks_of"].get(source_of(row), {}).get(name))
    remark = "; ".join(each for each in remarks if each)
    return Configuration(source_of(row), tuple(_for_data(line, row) for line in networks), remark, known=known)


def _of_clip(row: PrintedRow, spec: dict[str, Any]) -> Configuration:
    """CLIP as it is, or fine-tuned, on pictures in place of features."""
    size, remarks = spec["clip"]["sizes"][method_of(row)], spec["remarks"]
    data = f"{source_of(row)}-pictures"
    if "zero-shot" in f"{row.method} {row.note}":
        return Configuration(data, (), remarks[f"CLIP ViT-{size}, zero-shot"], size)
    return Configuration(data, (spec["clip"]["fine_tuned"],), remarks["CLIP, fine-tuned"], size)


def _for_data(words: str, row: PrintedRow) -> str:
    """The same with `--printed-for`, where the paper has settings of its own for the data or the noise rate."""
    options = words.split()
    if "--as-printed" not in options:
        return words
    preset = METHODS[options[options.index("--method") + 1]].method.printed
    assert preset is not None
    source, loud = source_of(row), row.noise is not None and row.noise >= 0.6
    choices = [f"{source}-noise60", "noise60"] if loud else []
    choices += [f"{source}-vse"] if "global" in options else []
    for name in (*choices, source):
        if name in preset.for_data and not (name == "noise60" and source in preset.for_data):
            return f"{words} --printed-for {name}"
    return words


@cache
def _spec() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "rows.toml").read_text(encoding="utf-8"))
