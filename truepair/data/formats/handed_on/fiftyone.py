"""FiftyOne's CSVDataset: `labels.csv` with a column `filepath`, relative to `data/`, and a column a field.

It has one row a picture (the importer keeps the last of several): where a picture has several captions, that of the
least probable pair. `fo.Dataset.from_dir(DIR, dataset_type=fo.types.CSVDataset)` reads it (fields= names what is no
text), and so does truepair, as a folder with a table.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.handed_on.layout import Layout, rounded, scores_of
from truepair.data.formats.handed_on.pictures import WrittenPictures, check_pictures
from truepair.data.selection import Selection

COLUMNS = ("filepath", "caption", "pair_id", "p_match", "flagged", "caption_count")


class FiftyOne(Layout):
    """`fiftyone/`: `data/` with the pictures of all scored pairs, and `labels.csv` with filepath, caption, pair_id,
    p_match, flagged (true or false), and caption_count, how many captions the picture has.
    """

    holds = "fiftyone"

    def check(self, collection: Collection) -> None:
        check_pictures(collection, "FiftyOne")

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        assert isinstance(collection, PairsCollection)
        target, scores = folder / self.holds, scores_of(selection)
        (target / "data").mkdir(parents=True)
        pictures = WrittenPictures(collection, target / "data")
        of_picture: dict[str, list[int]] = {}
        for row in np.flatnonzero(~np.isnan(scores)).tolist():
            of_picture.setdefault(pictures.name(row), []).append(row)
        with (target / "labels.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for name, rows in of_picture.items():
                row = min(rows, key=lambda each: scores[each])
                caption, pair_id = collection.captions(row, row + 1)[0], collection.ids(row, row + 1)[0]
                flagged = "true" if selection.flagged[row] else "false"
                writer.writerow([name, caption, pair_id, rounded(scores[row]), flagged, len(rows)])
