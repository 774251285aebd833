"""A precomp folder in, a precomp folder out: the split that was read holds the kept pairs, the others are as they were.

The pairs are those that were read: where noise was injected, the mismatched ones, not those of the files. An image
is written once for every k captions, k being the largest number that divides the kept captions of every image: the
layout knows one k for all. Five captions an image stay so if each image keeps all five, else an image is mostly written
once for each kept caption.

`{split}_ids.txt` has the images' names (or the captions', where the input has one line a caption), `{split}_meta.tsv`
the rows of the kept captions, `weights.npy` float32 a weight for each caption. Captions are in the file type that was
read. Large arrays of other splits are hard links where the disk allows it, everything else is copied.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from truepair.data.formats.precomp.precomp_files import PrecompSplit, available_splits, read_split
from truepair.data.pairs import IntArray, Pairs
from truepair.data.selection import Selection, taken, write_npy
from truepair.errors import InputError
from truepair.files import link_or_copy

WEIGHTS = "weights.npy"


def write_precomp(pairs: Pairs, selection: Selection, source: Path, split: str, folder: Path) -> None:
    """Writes into the folder; `truepair train` can use it in the place of `source`."""
    contents = read_split(source, split)
    images_read = len(pairs.images) * pairs.images.copies
    if (contents.image_count, len(contents.captions)) != (images_read, len(pairs.texts)):
        raise InputError(
            f"{contents.folder}: the split {contents.name!r} has {contents.image_count} images and "
            f"{len(contents.captions)} captions, {images_read} and {len(pairs.texts)} were read before. Begin again"
        )
    rows = selection.kept_rows
    image_of, text_of = pairs.image_index[rows], pairs.text_index[rows]
    per_image = _captions_per_image(image_of)
    images, features = image_of[::per_image], pairs.images.features
    shape = (len(images), *features.shape[1:])
    write_npy(folder / contents.features_file.name, shape, features.dtype, taken(features, images))
    captions = [pairs.texts.captions[row] for row in text_of]
    if contents.captions_file.suffix == ".tsv":
        captions = [f"{pairs.texts.ids[row]}\t{caption}" for row, caption in zip(text_of, captions, strict=True)]
    _write_lines(folder / contents.captions_file.name, captions)
    _write_lines(folder / contents.ids_file.name, _names(contents, pairs, images, text_of))
    if contents.meta_lines:
        per_caption = len(contents.meta_lines) - 1 == len(pairs.texts)
        # The class of a pair goes with its caption, as when noise is injected: a row an image means the image it had.
        source_rows = text_of if per_caption else text_of // (len(pairs.texts) // images_read)
        lines = [contents.meta_lines[1 + row] for row in source_rows]
        _write_lines(folder / contents.meta_file.name, [contents.meta_lines[0], *lines])
    np.save(folder / WEIGHTS, selection.weights[rows])
    for path in sorted(contents.folder.iterdir()):
        if path.is_file() and path.name != WEIGHTS and not _of_split(path.name, contents):
            # Only arrays are linked: who edits a text of the export in place must not edit the input.
            (link_or_copy if path.suffix == ".npy" else shutil.copyfile)(path, folder / path.name)


def _captions_per_image(image_of: IntArray) -> int:
    """The largest k so that the captions c with the same c // k have one image."""
    starts = np.flatnonzero(np.diff(image_of, prepend=-1))
    return int(np.gcd.reduce(np.diff(starts, append=len(image_of))))


def _names(contents: PrecompSplit, pairs: Pairs, images: IntArray, text_of: IntArray) -> list[str]:
    lines = contents.id_lines or []
    if len(lines) == len(pairs.texts) > len(pairs.images):
        return [lines[row] for row in text_of]
    return [pairs.images.ids[row] for row in images]


def _of_split(name: str, contents: PrecompSplit) -> bool:
    """Whether a file belongs to the split that was read, one that nobody here knows included."""
    others = (split for split in available_splits(contents.folder) if split != contents.name)
    owned = name.startswith(f"{contents.name}_")
    return owned and not any(name.startswith(f"{split}_") for split in others if split.startswith(contents.name))


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", errors="surrogateescape"))
