"""What becomes of each row of a table: kept as it is, kept without some captions, or left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.formats.tables.drafts import label_of
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import caption_places
from truepair.data.selection import Selection

if TYPE_CHECKING:
    from truepair.data.formats.tables.tables import TableCollection

Places = list[tuple[str, int | None]]
"""Captions by their column, and their place in its list or None where the column holds one text."""


class TableRows:
    """The rows of a table to be written; those of splits that were not read stay as they are.

    Args:
        pictures: is asked for the picture of each row that stays, and so knows them all in the end.

    Attributes:
        columns: those that say what becomes of a row.
    """

    def __init__(self, collection: TableCollection, selection: Selection, pictures: PictureFolder) -> None:
        self._captions, self._image, self._pictures = collection.caption_columns, collection.image_column, pictures
        self._split_column, self._splits = collection.split_column, collection.splits
        self.columns = [self._image, *self._captions, *([self._split_column] if self._split_column else [])]
        kept = selection.kept_rows
        order = np.lexsort((collection.caption_of_pair[kept], collection.row_of_pair[kept]))
        self._rows = collection.row_of_pair[kept][order]
        self._numbers = collection.caption_of_pair[kept][order]

    def has_kept(self, start: int, stop: int) -> bool:
        """Whether a caption is kept in the rows [start, stop)."""
        return bool(np.searchsorted(self._rows, start) < np.searchsorted(self._rows, stop))

    def removed(self, row: int, fields: Mapping[str, Any]) -> Places | None:
        """The captions to take out of a row, none where it stays as it is; None where the row is left out.

        Captions that were not read (empty, no text, not asked for) are taken out like those that are not kept.
        """
        found = self._removed(row, fields)
        image = fields.get(self._image)
        if found is not None and isinstance(image, str):
            self._pictures.find(image.strip())
        return found

    def _removed(self, row: int, fields: Mapping[str, Any]) -> Places | None:
        if self._split_column is not None and label_of(fields.get(self._split_column)) not in self._splits:
            return []
        start, stop = np.searchsorted(self._rows, [row, row + 1])
        kept = set(self._numbers[start:stop].tolist())
        if not kept:
            return None
        places = enumerate(caption_places(fields, self._captions))
        return [
            (column, place)
            for number, (column, place, value) in places
            if number not in kept and not (place is None and value in (None, ""))
        ]


def without(entry: Mapping[str, Any], removed: Places) -> dict[str, Any]:
    """The entry without these captions: taken out of a list, or emptied where the column holds one text."""
    changed = dict(entry)
    for column in dict.fromkeys(column for column, _ in removed):
        places = {place for name, place in removed if name == column}
        values = entry[column]
        changed[column] = "" if None in places else [item for k, item in enumerate(values) if k not in places]
        # Karpathy's layout has the numbers of the sentences beside them.
        numbers = entry.get("sentids") if column == "sentences" else None
        if isinstance(numbers, list) and len(numbers) == len(values):
            changed["sentids"] = [number for k, number in enumerate(numbers) if k not in places]
    return changed
