"""The field's "precomp" layout: one folder, for each split an array of region features and a file of captions.

For a split such as "train" the folder holds

- `train_ims.npy`: (n, R, D) or (n, D), float16 or float32;
- `train_caps.txt`, one caption a line, or `train_caps.tsv`, id TAB caption (CC152K; `.txt` wins where both exist);
- optionally `train_ids.txt`, one name a line for each image or for each caption;
- optionally `train_meta.tsv`, a header line, then one row for each image or for each caption.

Caption c belongs to image c // k, where k is the number of captions divided by the number of images. Where the array
holds every image several times in a row (dev and test of Flickr30K and MS-COCO: five times), these are one image with
all their captions; see `data/repeats.py`. Text is UTF-8, with or without a byte order mark, with Unix or Windows line
ends; quotes in `.tsv` have no special meaning.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np

from truepair.data.collection import PairsCollection
from truepair.data.config import Reading
from truepair.data.description import MOST_PROBLEMS, Range, SplitDescription
from truepair.data.formats.format import Format
from truepair.data.formats.precomp.precomp_files import (
    PrecompSplit,
    all_meta,
    available_splits,
    column,
    copies_in,
    read_split,
)
from truepair.data.formats.precomp.precomp_problems import find_problems
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.selection import Selection
from truepair.data.statistics import caption_statistics, image_statistics
from truepair.errors import InputError


class PrecompCollection(PairsCollection):
    """One split of a precomp folder; it is written from its pairs, with the noise that was injected into them."""

    writable = True
    written_from_pairs = True

    def __init__(self, pairs: Pairs, folder: Path, split: str) -> None:
        self.folder, self.split = folder, split
        super().__init__(pairs)

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.precomp.write import write_precomp

        write_precomp(self.pairs, selection, self.folder, self.split, folder)


class Precomp(Format):
    """Folders in the field's precomp layout."""

    holds = "features"
    understood = "a folder in the field's precomp layout (train_ims.npy, train_caps.txt, …)"
    options = frozenset({"label"})
    collection = PrecompCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        folder = Path(source)
        return any(folder.glob("*_ims.npy")) or any(folder.glob("*_caps.txt"))

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return available_splits(Path(source))

    def open(self, source: str | Path, split: str | None, reading: Reading) -> PrecompCollection:
        split = split or "train"
        return PrecompCollection(load_precomp(source, split, label=reading.label), Path(source), split)

    def describe(self, source: str | Path, split: str | None, reading: Reading) -> SplitDescription:
        contents = read_split(source, split or "train")
        problems = find_problems(contents, label=reading.label)
        shown = tuple(islice(problems, MOST_PROBLEMS))
        each = copies_in(contents) if contents.captions_per_image is not None and not shown else 1
        per_image = None if contents.captions_per_image is None else contents.captions_per_image * each
        header, *rows = [line.split("\t") for line in contents.meta_lines or []] or [[]]
        classes = column(contents.meta_lines or [], reading.label) if reading.label in header else []
        return SplitDescription(
            name=contents.name,
            images=image_statistics(contents.features),
            captions=caption_statistics(contents.captions),
            captions_per_image=None if per_image is None else Range(per_image, per_image, per_image),
            label_columns={name: len({row[k] for row in rows if k < len(row)}) for k, name in enumerate(header)},
            problems=shown,
            problem_count=len(shown) + sum(1 for _ in problems),
            class_counts=dict(sorted(Counter(classes).items())),
            copies=each,
        )


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
        raise InputError(f"{contents.folder}/{first}{others}")
    per_image = contents.captions_per_image
    # A split without problems has both; this tells the type checker.
    assert contents.features is not None
    assert per_image is not None
    captions = contents.captions
    rows_of = np.repeat(np.arange(len(contents.features), dtype=np.int64), per_image)
    labels, class_names = (None, ()) if label is None else _labels(contents, label, rows_of)
    each = copies_in(contents)
    image_ids, text_ids = map(tuple, _names(contents, len(contents.features) // each, per_image * each, each))
    return Pairs(
        images=Images(contents.features[::each] if each > 1 else contents.features, image_ids, copies=each),
        texts=Texts(tuple(captions), text_ids),
        image_index=rows_of // each,
        text_index=np.arange(len(captions), dtype=np.int64),
        labels=labels,
        class_names=class_names,
        name=f"{contents.folder.name}/{contents.name}",
    )


def _names(contents: PrecompSplit, images: int, per_image: int, each: int) -> tuple[list[str], list[str]]:
    """The names of the images and those of the captions."""
    lines = [line.strip() for line in contents.id_lines or []]
    if len(lines) == images * each and lines == [name for name in lines[::each] for _ in range(each)]:
        lines = lines[::each]  # one line for each time that the array holds the image
    texts: list[str] | None = None
    if contents.captions_file.suffix == ".tsv":
        texts = [line.partition("\t")[0].strip() for line in contents.caption_lines or []]
    if len(lines) == images:
        names = lines
    elif lines and all(lines[row] == lines[row - row % per_image] for row in range(len(lines))):
        names = lines[::per_image]  # one line a caption, but it repeats the image's name
    else:
        names = texts if texts and not lines and per_image == 1 else [str(row) for row in range(images)]
        texts = texts or lines or None
    if texts is None:
        texts = names if per_image == 1 else [f"{name}#{k}" for name in names for k in range(per_image)]
    return names, texts


def _labels(contents: PrecompSplit, label: str, rows_of: IntArray) -> tuple[IntArray, tuple[str, ...]]:
    """The class number of each caption, and the class names."""
    class_names = tuple(sorted({name for _, lines in all_meta(contents) for name in column(lines, label)}))
    number = {name: k for k, name in enumerate(class_names)}
    labels = np.array([number[name] for name in column(contents.meta_lines or [], label)], dtype=np.int64)
    return (labels if len(labels) == len(rows_of) else labels[rows_of]), class_names
