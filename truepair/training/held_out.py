"""What is evaluated on must not have been trained on: pairs of a split drawn again, and copies of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from truepair.data.config import DataConfig, Reading
from truepair.data.pairs import Pairs
from truepair.data.repeats import held_in
from truepair.data.splits import plain_name
from truepair.errors import InputError
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder

COPIES_TOLD = 0.01
"""Share of a split's images from which on it is said that they are trained on as well."""


@dataclass(frozen=True)
class SeenPairs:
    """Pairs of a split that a run was trained on, `ids` of the `pairs` of the `split`."""

    pairs: Pairs
    split: str
    ids: list[str]

    def told(self, run: Path | str, consequence: str) -> str:
        """How many they are, one of them, what follows from it, and the remedy; `run` is what the run is called."""
        return (
            f"{self.pairs.name}: {len(self.ids)} of {len(self.pairs)} pairs of the split {self.split!r} are among "
            f"those that {run} was trained on, {self.ids[0]!r} is one: {consequence}. Shares are drawn by the number "
            f"of images ({len(self.pairs.images)} are {self.split} now): the data, the shares or the seed are not "
            "those of the run. Give the data as they were then, or a table with a column split that keeps these pairs "
            "apart"
        )


def seen_in_training(run: Path, pairs: Pairs, source: str, split: str, reading: Reading) -> SeenPairs | None:
    """Pairs that a run was trained on, in a split drawn by shares; None where there are none.

    The draw depends on the number of images: with one more or fewer than at training, the splits are others altogether.
    Other data than those of the run, a source with splits of its own, the training split, and a run without a table of
    pairs are not looked at.

    Args:
        run: folder of a run, or of a pretrained model.
        pairs: of this split of this source, as drawn now.
        reading: how they were read.
    """
    folder = RunFolder(run)
    if (reading.dev_share is None and reading.test_share is None) or plain_name(split) == "train":
        return None
    trained_on = (folder.read_config().get("data") or {}).get("source")
    if trained_on != DataConfig(source).resolved().source or not folder.pairs.exists():
        return None
    known = set(read_pair_table(folder.pairs, ["pair_id"]).column("pair_id").to_pylist())
    ids = [name for name in pairs.ids() if name in known]
    return SeenPairs(pairs, split, ids) if ids else None


def copies_in_training(trained: Pairs, splits: Mapping[str, Pairs | None]) -> list[str]:
    """A sentence for each split of which at least one image in a hundred has the features of one that is trained on.

    Single ones, such as two products with one photograph, are in the data of the field too, and change little.
    """
    said = []
    for split, pairs in splits.items():
        if pairs is None or pairs.images.features.shape[1:] != trained.images.features.shape[1:]:
            continue
        copies = held_in(pairs.images.features, trained.images.features)
        if len(copies) >= COPIES_TOLD * len(pairs.images):
            said.append(
                f"{pairs.name}: {len(copies):,} of {len(pairs.images):,} images of the split {split!r} have the "
                f"features of images that are trained on, {pairs.images.ids[int(copies[0])]!r} is one: its figures say "
                "less of new images; keep copies of a picture in one split"
            )
    return said


def check_held_out(run: Path, pairs: Pairs, source: str, split: str, reading: Reading) -> None:
    """Refuse a split that holds pairs the run was trained on; arguments as of `seen_in_training`.

    Raises:
        InputError: how many they are, one of them, and the remedy.
    """
    seen = seen_in_training(run, pairs, source, split, reading)
    if seen is not None:
        raise InputError(seen.told(run, "figures on them would mean nothing"))
