"""Runs that division reports are made of: written by hand, or trained on tiny data."""

import json

import numpy as np
import pyarrow
from PIL import Image
from pyarrow import parquet

from truepair.engines.config import GlobalConfig
from truepair.training.setup import Setup

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 3, "batch_size": 16, "minimum_count": 1, "learning_rate": 1e-2}
METHODS = {
    "triplet": ("triplet", {}),
    "infonce": ("infonce", {}),
    "crcl": ("crcl", {}),
    "truepair": ("truepair", {}),
    "gsc": ("gsc", {}),
    "gsc-two": ("gsc", {"co_train": True}),
    "ugncl": ("ugncl", {"warm_up_epochs": 1, "least_clean": 0.0}),
}
FIELDS = {
    "triplet": {"seen_probability"},
    "infonce": {"seen_probability"},
    "crcl": {"label", "seen_similarity"},
    "truepair": {"label", "credit", "seen_similarity"},
    "gsc": {"seen_similarity", "seen_structure", "cross_modal", "intra_modal", "label"},
    "gsc-two": {
        "belief",
        *(
            field + end
            for field in ("seen_similarity", "seen_structure", "cross_modal", "intra_modal", "label")
            for end in ("", "_b")
        ),
    },
    "ugncl": {"share", "pair_belief", "label", "uncertainty"},
}


def rows_of(run):
    return parquet.read_table(run / "pairs.parquet").to_pylist()


def hand_written(folder, records, pairs=None, method="mine", options=None, data=None):
    """A run folder with nothing but what the report reads."""
    folder.mkdir(parents=True)
    config = {"method": {"name": method, "options": options or {}}, "data": data}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    if pairs is not None:
        parquet.write_table(pyarrow.table(pairs), folder / "pairs.parquet")
    return folder


def record(epoch=1, stage=0, **figures):
    return {"epoch": epoch, "stage": stage, "division": figures or {"clean": 4, "hard": 0, "noisy": 0}}


def table(belief, division=None, **columns):
    count = len(belief)
    return {
        "pair_id": [str(row) for row in range(count)],
        "row": list(range(count)),
        "image_index": list(range(count)),
        "image": [f"image{row}" for row in range(count)],
        "caption": [f"caption {row}" for row in range(count)],
        "p_match": belief,
        "flagged": [value < 0.5 for value in belief],
        "division": division or ["clean" if value >= 0.5 else "noisy" for value in belief],
        **columns,
    }


def check_picture(path, size=None):
    image = Image.open(path).convert("RGB")
    assert image.size == size if size else min(image.size) > 200
    pixels = np.asarray(image)
    inked = (pixels != 255).any(axis=2)
    assert 0.005 < inked.mean() < 0.95
    frame = np.concatenate([inked[0], inked[-1], inked[:, 0], inked[:, -1]])
    assert not frame.any(), f"{path}: something is cut off at the edge"
