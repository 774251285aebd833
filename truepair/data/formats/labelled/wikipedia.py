"""The Wikipedia featured-articles set (Rasiwasia et al., ACM MM 2010) as released: features and lists in one folder.

`raw_features.mat` holds `I_tr`, `T_tr`, `I_te`, `T_te`; `trainset_txt_img_cat.list` and `testset_txt_img_cat.list` have
a line for each row of them: text id, image id and class (1 … 10), separated by tabs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.data.config import Reading
from truepair.data.formats.labelled.feature_arrays import open_arrays
from truepair.data.formats.labelled.feature_files import LabelledFeatures, LabelledFile
from truepair.data.formats.labelled.feature_layouts import find_parts
from truepair.errors import InputError
from truepair.files import read_file

FEATURES = "raw_features.mat"
LISTS = {"train": "trainset_txt_img_cat.list", "test": "testset_txt_img_cat.list"}
CLASSES = (
    "art", "biology", "geography", "history", "literature", "media", "music", "royalty", "sport", "warfare",
)  # fmt: skip


class Wikipedia(LabelledFeatures):
    """The Wikipedia folder."""

    understood = "Wikipedia's folder of labelled features"

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return (Path(source) / FEATURES).is_file()

    def read(self, source: str | Path) -> LabelledFile:
        folder = Path(source).resolve()
        arrays = open_arrays(folder / FEATURES)
        parts = find_parts(arrays.path, arrays.names, labelled=False)
        labels, ids = {}, {}
        for split in parts:
            if split not in LISTS:
                raise InputError(
                    f"{arrays.path} holds a {split} part, for which there is no list; expected train and test. Save "
                    "the arrays with their labels in a file of another name, and give that file"
                )
            texts, images, classes = _read_list(folder / LISTS[split])
            labels[split] = np.array(classes, dtype=np.int64)
            ids[split] = (images, texts)
        return LabelledFile(arrays, parts, labels, CLASSES, folder.name, ids)


def _read_list(path: Path) -> tuple[list[str], list[str], list[int]]:
    """Text ids, image ids and classes from 0."""
    try:
        lines = read_file(path).decode("utf-8").removesuffix("\n").split("\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}); expected the list of texts, images and classes that "
            f"belongs to {FEATURES}. Copy it there, or give a feature file that holds its labels"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}); copy or download the file again") from error
    texts, images, classes = [], [], []
    for row, line in enumerate(lines, start=1):
        columns = line.rstrip("\r").split("\t")
        number = columns[2] if len(columns) == 3 else ""
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(CLASSES)):
            raise InputError(
                f"{path}, line {row}: found {line[:80]!r}; expected text id, image id and a class from 1 to "
                f"{len(CLASSES)}, separated by tabs. Copy or download the file again"
            )
        texts.append(columns[0])
        images.append(columns[1])
        classes.append(int(number) - 1)
    return texts, images, classes
