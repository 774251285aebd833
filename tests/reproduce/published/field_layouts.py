"""Data in the exact layout in which the field distributes them, with their published counts; rows asked for on them."""

from pathlib import Path

import numpy as np
import pytest

from truepair.cli.main import build_parser
from truepair.cli.train import job_of
from truepair.errors import InputError
from truepair.reproduce.published.command import Asked, planned
from truepair.reproduce.published.data_sets import read_data_sets
from truepair.reproduce.published.printed import printed_table


def write_layout(folder, name):
    """A data set with its published counts, in features of one region of width 2: zeros that take no disk."""
    data = read_data_sets()[name]
    place = folder / data.folder
    place.mkdir()
    for split, (images, captions) in data.splits.items():
        rows = images if split == "train" else captions  # dev and test hold every image once a caption
        np.lib.format.open_memmap(place / f"{split}_ims.npy", mode="w+", dtype=np.float16, shape=(rows, 1, 2))
        if name == "cc152k":
            (place / f"{split}_caps.tsv").write_text("".join(f"{k}\ta\n" for k in range(captions)))
        else:
            (place / f"{split}_caps.txt").write_text("a\n" * captions)
    return place


def write_features(path, splits, width=2, classes=10):
    """MRL's HDF5 files: all vectors zero, but for labels."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for split, pairs in splits.items():
            for name in ("imgs_deep", "texts"):
                file.create_dataset(
                    f"{split}_{name}", (pairs, width), np.float32, chunks=(min(pairs, 4096), width), fillvalue=1
                )
            for name in ("imgs_labels", "texts_labels"):
                file[f"{split}_{name}"] = np.arange(pairs, dtype=np.int64) % classes
    return path


def asked(*data, **others):
    given = {"methods": [], "rates": [], "seeds": [0], "index": None, "jobs": 1, "out": Path("x"), **others}
    return Asked(data=data, **given)


JOBS: dict[str, object] = {}
PARSER = build_parser()  # once: it takes a tenth of a second


def job(words):
    """The job that a command line describes."""
    if words not in JOBS:
        JOBS[words] = job_of(PARSER.parse_args(["train", *words.split()]))
    return JOBS[words]


def refusal(folder, table="crcl-1", **others):
    with pytest.raises(InputError) as caught:
        planned(printed_table(table), asked(folder, **others))
    return str(caught.value)


def index_of(rate, length=145000, images=29000, places=7):
    """Captions, or images, moved by a number of places; 7 parts the captions of each image."""
    index = np.arange(length) * images // length
    index[: int(rate * length)] = np.roll(index[: int(rate * length)], places)
    return index
