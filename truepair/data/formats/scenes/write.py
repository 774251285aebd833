"""Drawn pairs in, a folder of pictures with a table out: PNG files, and one line of `captions.jsonl` a pair.

`weights.npy` is float32, a weight for each line. Region features of the written pictures are those of the drawn ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from truepair.data.formats.embeddings.npy import write_npy
from truepair.data.pairs import Pairs
from truepair.data.selection import Selection


def write_scenes(pairs: Pairs, selection: Selection, split: str, folder: Path) -> None:
    """Writes the kept pairs into the folder; pictures in none of them are left out."""
    from PIL import Image

    rows = selection.kept_rows
    assert pairs.images.pictures is not None
    (folder / "images").mkdir()
    for image in np.unique(pairs.image_index[rows]).tolist():
        pixels = pairs.images.pictures[image]
        Image.fromarray(pixels).save(folder / "images" / f"{pairs.images.ids[image]}.png")
    with (folder / "captions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for row in rows.tolist():
            name = f"{pairs.images.ids[pairs.image_index[row]]}.png"
            line = {"image": f"images/{name}", "caption": pairs.texts.captions[pairs.text_index[row]], "split": split}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    write_npy(folder / "weights.npy", (len(rows),), np.float32, [selection.weights[rows]])
