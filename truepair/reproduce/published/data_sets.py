"""The data sets of the published tables: where the field gets them, and whether a folder holds one, whole."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from truepair.data.formats.labelled.feature_files import LabelledFeatures
from truepair.data.formats.precomp.precomp_files import count_lines
from truepair.data.index_files import read_index
from truepair.data.open import format_of, load
from truepair.data.text import Vocabulary
from truepair.errors import InputError
from truepair.files import map_npy
from truepair.reproduce.published.picture_sets import OTHER_PROTOCOL, check_pictures
from truepair.reproduce.published.printed import FOLDER

RATE_TOLERANCE = 0.01
"""How far the share of wrong pairs in an index file may be from the rate in its name."""


@dataclass(frozen=True)
class DataSet:
    """A data set as it is published.

    Attributes:
        name: `f30k`, …; `folder`: what it is called as distributed.
        layout: "precomp", "labelled" or "pictures", see docs/data.md.
        splits: split → its images (or pairs) and captions.
        score: name in the tables → options of `truepair evaluate`.
        where: where the field gets it, which files, what sizes.
        train: options that all runs take.
        words: of the vocabulary file that comes with it; 0 where none does.
        table: of pictures: Karpathy's JSON; `parts`: the folders of pictures beside it.
    """

    name: str
    folder: str
    layout: str
    splits: dict[str, tuple[int, int]]
    score: dict[str, str]
    where: str
    train: str = ""
    words: int = 0
    table: str = ""
    parts: tuple[str, ...] = ()

    @property
    def images(self) -> int:
        return self.splits["train"][0]

    @property
    def captions(self) -> int:
        return self.splits["train"][1]

    def train_options(self, source: Path) -> list[str]:
        """Options that all runs take; a file with a validation part of its own has none to be carved."""
        kind = format_of(str(source)) if self.layout == "labelled" else None
        own_dev = isinstance(kind, LabelledFeatures) and "dev" in kind.read(source).parts
        return [] if own_dev else self.train.split()

    def vocabulary(self, source: Path) -> Path | None:
        """The vocabulary file of the field, in the folder or in `vocab` beside it; None where it is not there."""
        if not self.words:
            return None
        folders = (source, source.parent, source.parent / "vocab", source.parent.parent / "vocab")
        names = (folder.absolute() / f"{self.folder}_vocab.json" for folder in folders)
        return next((path for path in names if path.is_file()), None)

    def vocabulary_options(self, source: Path) -> list[str]:
        """Options that read captions with that file; without it words are those of the captions."""
        path = self.vocabulary(source)
        return [] if path is None else ["--vocabulary", str(path)]

    def check(self, source: Path) -> None:
        """Refuse a source that is not the data set, whole, with the published counts.

        Raises:
            InputError: with the file, what was expected and what was found.
        """
        if self.layout == "pictures":
            check_pictures(self, source)
            return
        for split, (images, captions) in self.splits.items():
            if self.layout == "precomp":
                self._check_split(source, split, images, captions)
            else:
                self._check_pairs(source, split, images)
        if (path := self.vocabulary(source)) is not None and (found := len(Vocabulary.read(path))) != self.words:
            raise InputError(
                f"{path} has {found:,} words; expected {self.words:,}, as in the published {self.folder}. Take the "
                "file as it was distributed, or remove it: then words are those of the captions"
            )

    def _check_split(self, folder: Path, split: str, images: int, captions: int) -> None:
        array, texts = folder / f"{split}_ims.npy", folder / f"{split}_caps.txt"
        texts = texts if texts.exists() else texts.with_suffix(".tsv")
        for path, expected in ((array, f"{images:,} images"), (texts, f"{captions:,} captions")):
            if not path.exists():
                raise InputError(f"{path} is missing; expected {expected} of {self.folder}. {self.where}")
        rows = {images} if split == "train" else {images, captions}
        try:
            features, lines = map_npy(array), count_lines(texts)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{array} or {texts} cannot be read ({error}); expected {images:,} images and {captions:,} captions"
            ) from error
        for path, found, allowed, what in ((array, len(features), rows, "rows"), (texts, lines, {captions}, "lines")):
            if found not in allowed:
                expected = " or ".join(f"{number:,}" for number in sorted(allowed))
                raise InputError(
                    f"{path} has {found:,} {what}; expected {expected}, as in the published {self.folder}. "
                    f"{OTHER_PROTOCOL}"
                )

    def _check_pairs(self, source: Path, split: str, pairs: int) -> None:
        """Pairs of validation are counted with those of test, which most files hold together."""
        parts = ("dev", "test") if split == "test" else (split,)
        found = sum(len(load(str(source), part)) for part in parts)
        if found != pairs:
            raise InputError(
                f"{source} has {found:,} {split} pairs; expected {pairs:,}, as in the published {self.folder}. "
                f"{OTHER_PROTOCOL}"
            )

    def check_index(self, path: Path, rate: float, shuffled: str) -> None:
        """Refuse an index file that is not one of the training pairs, of this kind of noise and this rate.

        Raises:
            InputError: with the file, what was expected and what was found.
        """
        length = self.captions if shuffled == "captions" else self.images
        what = f"expected {length:,} whole numbers (one of {'the captions' if shuffled == 'captions' else 'the images'}"
        index = read_index(
            path,
            f"{what} of {self.folder}'s train), each below {self.images:,}",
            lengths=(length,),
            below=self.images,
            what="image",
            made_for=f"an index made for the training split of {self.folder}, with {shuffled} shuffled",
        )
        found = float(np.mean(index != np.arange(length) * self.images // length))
        if abs(found - rate) > RATE_TOLERANCE:
            raise InputError(
                f"{path} mismatches {100 * found:.1f} % of the {shuffled}; expected {100 * rate:.0f} %. "
                "Use the file of that rate"
            )


@cache
def read_data_sets() -> dict[str, DataSet]:
    """All data sets by name."""
    spec = tomllib.loads((FOLDER / "data_sets.toml").read_text(encoding="utf-8"))
    return {
        name: DataSet(
            name=name,
            **{
                **entry,
                "splits": {split: tuple(n) for split, n in entry["splits"].items()},
                "parts": tuple(entry.get("parts", ())),
            },
        )
        for name, entry in spec.items()
    }


def find_sources(given: Sequence[Path]) -> dict[str, Path]:
    """Which data set lies where: folders as distributed, folders that hold them, or feature files. None is checked.

    Raises:
        InputError: a path is no data set of the tables and holds none, or two are the same one.
    """
    found: dict[str, Path] = {}
    for path in given:
        itself = data_set_at(path)
        beside = itself is None or read_data_sets()[itself].layout == "pictures"  # others may lie beside the pictures
        inside = [path] if itself else []
        inside += sorted(path.iterdir()) if beside and path.is_dir() else []
        known = [(name, place) for place in inside if (name := data_set_at(place))]
        if not known:
            names = ", ".join(entry.folder for entry in read_data_sets().values() if not entry.table)
            tables = ", ".join(entry.table for entry in read_data_sets().values() if entry.table)
            raise InputError(
                f"{path} is none of the data sets of the published tables and holds none; expected a folder named or "
                f"counted as one of {names}, or one that holds {tables}. Check the path"
            )
        for name, place in known:
            if name in found:
                raise InputError(f"{place} and {found[name]} are both {name}; give one of them")
            found[name] = place
    return found


def data_set_at(path: Path) -> str | None:
    """The data set a path is, by its name, else by the number of training rows."""
    lower = path.name.lower()
    if (pictures := pictures_at(path)) is not None:
        return pictures
    for name, entry in read_data_sets().items():
        named = lower == name or lower == entry.folder.lower()
        if named and entry.layout != "pictures" and (path.is_dir() or path.is_file()):
            return name
    if path.is_file() and path.suffix in (".mat", ".npz", ".h5", ".hdf5", ".h5py"):
        words = {"nus": "nuswide10", "xmedianet": "xmedianet", "wiki": "wikipedia"}
        return next((name for word, name in words.items() if word in lower), None)
    if (array := path / "train_ims.npy").is_file():
        try:
            rows = len(map_npy(array))
        except (OSError, ValueError):
            return None
        precomp = (entry for entry in read_data_sets().values() if entry.layout == "precomp")
        return next((entry.name for entry in precomp if entry.images == rows), None)
    return None


def pictures_at(path: Path) -> str | None:
    """The data set of pictures of which a folder holds the JSON, or a folder of pictures."""
    if (path / "train_ims.npy").exists():
        return None
    sets = (entry for entry in read_data_sets().values() if entry.layout == "pictures")
    signs = ((entry.name, path / sign) for entry in sets for sign in (entry.table, *entry.parts))
    return next((name for name, sign in signs if sign.exists()), None)


def index_in(folder: Path, data: DataSet, rate: float, shuffled: str) -> Path:
    """The checked index file of a rate in a folder, by the names of the released ones.

    Raises:
        InputError: there is none, or it is not of this data set, kind and rate.
    """
    names = (f"{data.folder}_{rate:g}.npy", f"{data.folder}/noise_inx_{rate:g}.npy", f"{data.name}_{rate:g}.npy")
    for name in names:
        if (folder / name).is_file():
            data.check_index(folder / name, rate, shuffled)
            return folder / name
    raise InputError(f"{folder} holds no index of {data.name} at {rate:g}; expected one of {', '.join(names)}")
