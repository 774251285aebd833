"""The field's "precomp" layout: one folder, for each split an array of region features and a file of captions.

For a split such as "train" the folder holds

- `train_ims.npy`: (n, R, D) or (n, D), float16 or float32;
- `train_caps.txt`, one caption a line, or `train_caps.tsv`, id TAB caption (CC152K; `.txt` wins where both exist);
- optionally `train_ids.txt`, one name a line for each image or for each caption;
- optionally `train_meta.tsv`, a header line, then one row for each image or for each caption.

Caption c belongs to image c // k, where k is the number of captions divided by the number of images. Text is
UTF-8, with or without a byte order mark, with Unix or Windows line ends; quotes in `.tsv` have no special meaning.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.data.formats.precomp.precomp_files import PrecompSplit, all_meta, column, read_split
from truepair.data.formats.precomp.precomp_problems import find_problems
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.errors import InputError


def load_precomp(folder: Path | str, split: str, *, label: str | None = None) -> Pairs:
    """The pairs of one split; features stay on disk (memory-mapped) and are checked once, all captions are read.

    Where the folder has no file of `split`, "dev" and "val" stand for each other and "test" for "testall".
    `label` names a column of the meta file: it becomes `labels`, numbered by the sorted names found in that column
    in all splits of the folder, so that a number means the same class in each of them.
    Names: images take theirs from the ids file, else their row number; captions take theirs from the `.tsv`, else
    from an ids file with one name a caption, else the image's name, with "#k" if an image has several captions.

    Raises:
        InputError: the folder or split is missing, or a file has a problem; the first is told, the others counted.
    """
    contents = read_split(folder, split)
    problems = find_problems(contents, label=label)
    first = next(problems, None)
    if first is not None:
        more = sum(1 for _ in problems)
        others = f" (and {more} more problems: `truepair describe {contents.folder}` lists them)" if more else ""
        raise InputError(f"{first}{others}")
    per_image = contents.captions_per_image
    # A split without problems has both; this tells the type checker.
    assert contents.features is not None
    assert per_image is not None
    captions = contents.captions
    image_index = np.repeat(np.arange(len(contents.features), dtype=np.int64), per_image)
    image_ids, text_ids = _names(contents, len(contents.features), per_image)
    labels, class_names = (None, ()) if label is None else _labels(contents, label, image_index)
    return Pairs(
        images=Images(contents.features, image_ids),
        texts=Texts(tuple(captions), text_ids),
        image_index=image_index,
        text_index=np.arange(len(captions), dtype=np.int64),
        labels=labels,
        class_names=class_names,
        name=f"{contents.folder.name}/{contents.name}",
    )


def _names(contents: PrecompSplit, images: int, per_image: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the images and those of the captions."""
    lines = [line.strip() for line in contents.id_lines or []]
    own_texts: list[str] | None = None
    if contents.captions_file.suffix == ".tsv":
        own_texts = [line.partition("\t")[0].strip() for line in contents.caption_lines or []]
    if len(lines) == images:
        image_ids = lines
    elif lines and all(lines[row] == lines[row - row % per_image] for row in range(len(lines))):
        # One line a caption, but it repeats the image's name.
        image_ids = lines[::per_image]
    else:
        image_ids = [str(row) for row in range(images)]
        if lines:
            own_texts = own_texts or lines
        elif own_texts and per_image == 1:
            image_ids = own_texts
    if own_texts is not None:
        return tuple(image_ids), tuple(own_texts)
    if per_image == 1:
        return tuple(image_ids), tuple(image_ids)
    return tuple(image_ids), tuple(f"{name}#{k}" for name in image_ids for k in range(per_image))


def _labels(contents: PrecompSplit, label: str, image_index: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """The class number of each caption, and the class names."""
    class_names = tuple(sorted({name for _, lines in all_meta(contents) for name in column(lines, label)}))
    number = {name: k for k, name in enumerate(class_names)}
    labels = np.array([number[name] for name in column(contents.meta_lines or [], label)], dtype=np.int64)
    return (labels if len(labels) == len(image_index) else labels[image_index]), class_names
