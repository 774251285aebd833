"""`scenes` as a source of pairs: 2,000 drawn pictures for training, 500 each for dev and test, five captions each."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truepair.data.collection import PairsCollection
from truepair.data.config import Reading
from truepair.data.formats.format import Format
from truepair.data.formats.scenes.name import NAME, is_scenes
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.selection import Selection
from truepair.data.splits import plain_name
from truepair.encoders.windows import Windows
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.formats.scenes.scenes import Scenes

COUNTS = {"train": 2000, "dev": 500, "test": 500}


class ScenesCollection(PairsCollection):
    """Drawn pairs. They are written as a folder of pictures with a table, with the noise that was injected."""

    writable = True
    written_from_pairs = True

    def __init__(self, pairs: Pairs, split: str) -> None:
        self.split = split
        super().__init__(pairs)

    def write(self, selection: Selection, folder: Path) -> None:
        """PNG files of the pictures that are in a kept pair, one line of `captions.jsonl` a kept pair, and
        `weights.npy`, float32, a weight for each line. Region features of the written pictures are those of the drawn.
        """
        from PIL import Image

        images, texts, rows = self.pairs.images, self.pairs.texts, selection.kept_rows
        assert images.pictures is not None
        (folder / "images").mkdir()
        for image in np.unique(self.pairs.image_index[rows]).tolist():
            Image.fromarray(images.pictures[image]).save(folder / "images" / f"{images.ids[image]}.png")
        with (folder / "captions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for row in rows.tolist():
                name = f"images/{images.ids[self.pairs.image_index[row]]}.png"
                line = {"image": name, "caption": texts.captions[self.pairs.text_index[row]], "split": self.split}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        np.save(folder / "weights.npy", selection.weights[rows])


class ScenesFormat(Format):
    """`scenes`; `scenes:500` has 500 training pictures instead of 2,000, `scenes:500:7` other ones."""

    holds = "features"
    understood = "scenes, the built-in drawings (scenes:500 for 500 training pictures)"
    collection = ScenesCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return is_scenes(source)

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return tuple(COUNTS)

    def open(self, source: str | Path, split: str | None, reading: Reading) -> ScenesCollection:
        name = NAME.fullmatch(str(source))
        assert name is not None
        found = plain_name(split or "train")
        if found not in COUNTS:
            raise InputError(f"scenes has no split {split!r}; it has {', '.join(COUNTS)}")
        count = int(name[1] or COUNTS["train"])
        if count < 1:
            raise InputError("scenes needs at least one training picture; use scenes, or scenes:COUNT with COUNT ≥ 1")
        return ScenesCollection(_drawn(found, count if found == "train" else COUNTS[found], int(name[2] or 0)), found)


@lru_cache(maxsize=8)
def _drawn(split: str, count: int, seed: int) -> Pairs:
    from truepair.data.formats.scenes.scenes import draw_scenes

    scenes = draw_scenes(count, seed=seed, split=split)
    for shared in (scenes.features, scenes.pictures):
        shared.flags.writeable = False
    return scene_pairs(scenes, f"scenes/{split}")


def scene_pairs(scenes: Scenes, name: str = "new drawings") -> Pairs:
    """The scenes as pairs: image i and its captions, texts 5i to 5i + 4."""
    count, per_image = len(scenes.ids), len(scenes.captions[0])
    captions = tuple(caption for group in scenes.captions for caption in group)
    return Pairs(
        images=Images(scenes.features, tuple(scenes.ids), scenes.pictures, encoder=Windows().identity()),
        texts=Texts(captions, tuple(f"{image}#{k}" for image in scenes.ids for k in range(per_image))),
        image_index=np.repeat(np.arange(count, dtype=np.int64), per_image),
        text_index=np.arange(count * per_image, dtype=np.int64),
        name=name,
    )
