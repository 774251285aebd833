"""open_clip's CSV: `filepath` and `title`, separated by tabs, a line a pair.

These are the names and the separator that its training takes by default (--csv-img-key, --csv-caption-key,
--csv-separator). truepair reads it as a table.
"""

from __future__ import annotations

import csv
from pathlib import Path

from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.handed_on.layout import Layout
from truepair.data.formats.handed_on.pictures import WrittenPictures, check_pictures
from truepair.data.selection import Selection


class OpenClip(Layout):
    """`open-clip/`: `pairs.csv` with the kept pairs, and their pictures. Paths are relative to that folder: start
    open_clip there.
    """

    holds = "open-clip"

    def check(self, collection: Collection) -> None:
        check_pictures(collection, "the CSV of open_clip")

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        assert isinstance(collection, PairsCollection)
        target = folder / self.holds
        target.mkdir()
        pictures = WrittenPictures(collection, target / "images")
        with (target / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["filepath", "title"])
            for row in selection.kept_rows.tolist():
                writer.writerow([f"images/{pictures.name(row)}", collection.captions(row, row + 1)[0]])
