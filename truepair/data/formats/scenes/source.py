"""`scenes` as a source of pairs: 2,000 drawn pictures for training, 500 each for dev and test, five captions each."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from truepair.data.collection import PairsCollection
from truepair.data.config import Reading
from truepair.data.formats.format import Format
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.selection import Selection
from truepair.data.splits import plain_name
from truepair.errors import InputError

COUNTS = {"train": 2000, "dev": 500, "test": 500}
_NAME = re.compile(r"scenes(?::(\d+))?(?::(\d+))?")


class ScenesCollection(PairsCollection):
    """Drawn pairs. They are written as a folder of pictures with a table, with the noise that was injected."""

    writable = True
    written_from_pairs = True

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.scenes.write import write_scenes

        write_scenes(self.pairs, selection, self.split, folder)

    def __init__(self, pairs: Pairs, split: str) -> None:
        self.split = split
        super().__init__(pairs)


class ScenesFormat(Format):
    """`scenes`; `scenes:500` has 500 training pictures instead of 2,000, `scenes:500:7` other ones."""

    holds = "features"
    understood = "scenes, the built-in drawings (scenes:500 for 500 training pictures)"
    collection = ScenesCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return _NAME.fullmatch(str(source)) is not None

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return tuple(COUNTS)

    def open(self, source: str | Path, split: str | None, reading: Reading) -> ScenesCollection:
        name = _NAME.fullmatch(str(source))
        assert name is not None
        found = plain_name(split or "train")
        if found not in COUNTS:
            raise InputError(f"scenes has no split {split!r}; it has {', '.join(COUNTS)}")
        count = int(name[1] or COUNTS["train"])
        if count < 1:
            raise InputError("scenes needs at least one training picture; use scenes, or scenes:COUNT with COUNT ≥ 1")
        return ScenesCollection(_drawn(found, count if found == "train" else COUNTS[found], int(name[2] or 0)), found)


@lru_cache(maxsize=4)
def _drawn(split: str, count: int, seed: int) -> Pairs:
    from truepair.data.formats.scenes.scenes import draw_scenes

    scenes = draw_scenes(count, seed=seed, split=split)
    for shared in (scenes.features, scenes.pictures):
        shared.flags.writeable = False
    per_image = len(scenes.captions[0])
    captions = tuple(caption for group in scenes.captions for caption in group)
    return Pairs(
        images=Images(scenes.features, tuple(scenes.ids), scenes.pictures),
        texts=Texts(captions, tuple(f"{image}#{k}" for image in scenes.ids for k in range(per_image))),
        image_index=np.repeat(np.arange(count, dtype=np.int64), per_image),
        text_index=np.arange(count * per_image, dtype=np.int64),
        name=f"scenes/{split}",
    )
