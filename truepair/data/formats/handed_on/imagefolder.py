"""Hugging Face's imagefolder: pictures, and a `metadata.jsonl` whose `file_name` says which picture a line is of.

`datasets.load_dataset("imagefolder", data_dir=…)` reads it, and so does truepair, as a folder with a table. A picture
has one line: with several captions these are a list, and so are pair_ids and p_match.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truepair.data.collection import Collection, PairsCollection
from truepair.data.formats.handed_on.layout import Layout, rounded, scores_of
from truepair.data.formats.handed_on.pictures import WrittenPictures, check_pictures
from truepair.data.selection import Selection


class ImageFolder(Layout):
    """`imagefolder/`: the pictures of the kept pairs, and `metadata.jsonl` with file_name, caption, pair_id and p_match
    (captions, pair_ids, p_match, where some picture has several).
    """

    holds = "imagefolder"

    def check(self, collection: Collection) -> None:
        check_pictures(collection, "an imagefolder")

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        assert isinstance(collection, PairsCollection)
        target, scores = folder / self.holds, scores_of(selection)
        target.mkdir()
        pictures = WrittenPictures(collection, target)
        lines: dict[str, list[int]] = {}
        for row in selection.kept_rows.tolist():
            lines.setdefault(pictures.name(row), []).append(row)
        several = any(len(rows) > 1 for rows in lines.values())
        with (target / "metadata.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for name, rows in lines.items():
                captions = [collection.captions(row, row + 1)[0] for row in rows]
                ids, fits = ([collection.ids(row, row + 1)[0] for row in rows], [rounded(scores[row]) for row in rows])
                said: dict[str, Any] = {"captions": captions, "pair_ids": ids, "p_match": fits}
                if not several:
                    said = {"caption": captions[0], "pair_id": ids[0], "p_match": fits[0]}
                file.write(json.dumps({"file_name": name, **said}, ensure_ascii=False) + "\n")
