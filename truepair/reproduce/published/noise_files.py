"""The field's index files: found by their released names, and refused where they are of something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.data.index_files import read_index
from truepair.data.pairs import IntArray
from truepair.errors import InputError
from truepair.reproduce.published.data_sets import DataSet

RATE_TOLERANCE = 0.01
"""How far the share of wrong pairs in an index file may be from the rate in its name."""
DRAWN = "or leave --noise-index out: noise is then drawn by the seed"
APART = "name only data sets with an index in --data and run the others by themselves"
SOURCES = {"captions": "BiCro and PC² have such files", "images": "RCL and L2RM have such files"}


def index_in(folder: Path, data: DataSet, rate: float, shuffled: str) -> Path:
    """The checked index file of a rate in a folder, by the names of the released ones.

    BiCro, PC² and L2RM name theirs alike, although L2RM shuffles images; RCL's have a folder for each data set.

    Args:
        shuffled: "captions" or "images".

    Raises:
        InputError: there is none, or it is not of this data set, kind and rate.
    """
    if not folder.is_dir():
        raise InputError(
            f"--noise-index {folder} is no folder; expected the one that holds the field's index files, such as "
            f"{data.folder}_{rate:g}.npy. Check the path, {DRAWN}"
        )
    names = [f"{data.folder}_{rate:g}.npy", f"{data.name}_{rate:g}.npy", f"{data.folder}/noise_inx_{rate:g}.npy"]
    names = names[::-1] if shuffled == "images" else names
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise InputError(
            f"{folder} holds no index of {data.name} at {rate:g}; expected one of {', '.join(names)}. Choose the rates "
            f"there are with --noise, {APART}, {DRAWN}"
        )
    check_index(found, data, rate, shuffled)
    return found


def check_index(path: Path, data: DataSet, rate: float, shuffled: str) -> None:
    """Refuse an index file that is not one of the training pairs, of this kind of noise and this rate.

    Where images are shuffled, it has an entry an image (RCL), or that of its image for each caption (L2RM).

    Raises:
        InputError: with the file, what was expected and what was found.
    """
    lengths = (data.captions,) if shuffled == "captions" else tuple({data.images: 0, data.captions: 0})
    entries = " or ".join(f"{length:,}" for length in lengths)
    what = "one of the captions" if shuffled == "captions" else "one of the images, or one of the captions"
    index = read_index(
        path,
        f"expected {entries} whole numbers ({what} of {data.folder}'s train), each below {data.images:,}",
        lengths=lengths,
        below=data.images,
        what="image",
        made_for=f"an index made for the training split of {data.folder}, with {shuffled} shuffled",
    )
    often = np.bincount(index, minlength=data.images)
    if (most := int(often.max())) > (each := len(index) // data.images):
        raise InputError(
            f"{path} names image {int(often.argmax()):,} {most:,} times; expected each image {each} times, as where "
            f"{shuffled} are shuffled. Take one of the field's files, {DRAWN}"
        )
    kind = kind_of(index, data)
    if kind != shuffled and data.captions > data.images:
        together = "have the captions of each image together" if kind == "images" else "part the captions of an image"
        raise InputError(
            f"{path} shuffles {kind}: its entries {together}; expected {shuffled} shuffled. {SOURCES[shuffled]}: take "
            f"one of them, {DRAWN}"
        )
    found = float(np.mean(index != np.arange(len(index)) * data.images // len(index)))
    if abs(found - rate) > RATE_TOLERANCE:
        raise InputError(
            f"{path} mismatches {100 * found:.1f} % of the {shuffled}; expected {100 * rate:.0f} %. "
            "Use the file of that rate"
        )


def kind_of(index: IntArray, data: DataSet) -> str:
    """What an index shuffles: "images" where it has an entry an image, or one and the same for all its captions."""
    each = len(index) // data.images
    of_image = index.reshape(data.images, each)
    return "images" if bool((of_image == of_image[:, :1]).all()) else "captions"
