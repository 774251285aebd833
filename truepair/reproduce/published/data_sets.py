"""The data sets of the published tables: where the field gets them, and whether a folder holds one, whole."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from truepair.data.formats.labelled.feature_arrays import FEATURE_SUFFIXES
from truepair.data.formats.labelled.feature_files import LabelledFeatures
from truepair.data.formats.labelled.wikipedia import FEATURES
from truepair.data.formats.precomp.precomp_files import count_lines
from truepair.data.open import format_of, load
from truepair.data.repeats import differ
from truepair.data.text import Vocabulary
from truepair.errors import InputError
from truepair.files import map_npy
from truepair.reproduce.published.picture_sets import OTHER_PROTOCOL, check_pictures
from truepair.reproduce.published.printed import FOLDER

LOOKED_AT = 50  # images of dev or test, whether all their rows are equal


class NoDataSet(InputError):
    """A path is no data set of the tables and holds none."""


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
        if self.layout == "precomp":
            self._check_sizes(source)
        if (path := self.vocabulary(source)) is not None and (found := len(Vocabulary.read(path))) != self.words:
            raise InputError(
                f"{path} has {found:,} words; expected {self.words:,}, as in the published {self.folder}. Take the "
                "file as it was distributed, or remove it: then words are those of the captions"
            )

    def _check_split(self, folder: Path, split: str, images: int, captions: int) -> None:
        array, texts = folder / f"{split}_ims.npy", folder / f"{split}_caps.txt"
        texts = texts if texts.exists() else texts.with_suffix(".tsv")
        rows = {images} if split == "train" else {images, captions}
        self._check_count(array, str(array), lambda: len(map_npy(array)), rows, "rows", f"{images:,} images")
        if (shape := map_npy(array).shape)[1:-1] == ():
            raise InputError(
                f"{array} has the shape {shape}; expected images × regions × width, as in the published {self.folder}. "
                f"{OTHER_PROTOCOL}"
            )
        self._check_repeats(array, images)
        either = f"{texts.with_suffix('.txt')} (or .tsv)"
        self._check_count(texts, either, lambda: count_lines(texts), {captions}, "lines", f"{captions:,} captions")

    def _check_sizes(self, folder: Path) -> None:
        """Regions and their width are those of one network in all splits."""
        first, *others = (folder / f"{split}_ims.npy" for split in self.splits)
        expected = map_npy(first).shape[1:]
        for array in others:
            if (found := map_npy(array).shape[1:]) != expected:
                of_each, of_first = (" × ".join(map(str, shape)) for shape in (found, expected))
                raise InputError(
                    f"{array} has {of_each} numbers an image, {first} {of_first}; expected the same regions × width in "
                    f"all splits, as in the published {self.folder}. {OTHER_PROTOCOL}"
                )

    def _check_repeats(self, path: Path, images: int) -> None:
        """Where there is a row a caption, those of an image must be equal; some images are looked at."""
        features = map_npy(path)
        each = len(features) // images
        for image in np.linspace(0, images - 1, LOOKED_AT).astype(int).tolist() if each > 1 else ():
            first, last = image * each, (image + 1) * each - 1
            if bool(differ(features[first + 1 : last + 1], features[first:last]).any()):
                raise InputError(
                    f"{path}, rows {first} … {last} (from 0) differ; expected each of the {images:,} images {each} "
                    f"times in a row, as in the published {self.folder}. {OTHER_PROTOCOL}"
                )

    def _check_count(
        self, path: Path, named: str, count: Callable[[], int], allowed: set[int], what: str, expected: str
    ) -> None:
        if not path.exists():
            raise InputError(f"{named} is missing; expected {expected} of {self.folder}. {self.where}")
        try:
            found = count()
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); expected {expected} of {self.folder}. It may have been cut off in a "
                f"download: get it again. {self.where}"
            ) from error
        if found not in allowed:
            either = " or ".join(f"{number:,}" for number in sorted(allowed))
            raise InputError(
                f"{path} has {found:,} {what}; expected {either}, as in the published {self.folder}. {OTHER_PROTOCOL}"
            )

    def _check_pairs(self, source: Path, split: str, pairs: int) -> None:
        """Pairs of validation are counted with those of test, which most files hold together."""
        expected = f"expected {pairs:,} {split} pairs of {self.folder}. {self.where}"
        if source.is_dir() and not (source / FEATURES).is_file():
            raise InputError(f"{source} holds no feature file that is known; {expected}")
        parts = ("dev", "test") if split == "test" else (split,)
        try:
            found = sum(len(load(str(source), part)) for part in parts)
        except InputError as error:
            raise InputError(f"{error}. In all {expected}") from error
        if found != pairs:
            raise InputError(
                f"{source} has {found:,} {split} pairs; expected {pairs:,}, as in the published {self.folder}. "
                f"{OTHER_PROTOCOL}"
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
        itself = place_of(path)
        beside = itself is None or read_data_sets()[itself[0]].layout == "pictures"  # others may be there, too
        inside = sorted(path.iterdir()) if beside and path.is_dir() else []
        known = [found for found in (itself, *map(place_of, inside)) if found is not None]
        if not known:
            raise NoDataSet(no_data_set(path))
        for name, place in known:
            if name in found:
                raise InputError(f"{place} and {found[name]} are both {name}; give one of them")
            found[name] = place
    return found


def no_data_set(path: Path) -> str:
    """What is wrong with a path that is no data set and holds none."""
    if not path.exists():
        return f"{path} does not exist; expected the folder of a data set of the published tables. Check the path"
    sets = read_data_sets().values()
    names = ", ".join(entry.folder for entry in sets if not entry.table)
    tables = ", ".join(entry.table for entry in sets if entry.table)
    said = (
        f"{path} is none of the data sets of the published tables and holds none; expected a folder named or "
        f"counted as one of {names}, or one that holds {tables}. Check the path"
    )
    if (array := path / "train_ims.npy").is_file():
        counts = ", ".join(f"{entry.images:,} ({entry.folder})" for entry in sets if entry.layout == "precomp")
        try:
            said += f". {array} has {len(map_npy(array)):,} rows; published are {counts}"
        except (OSError, ValueError) as error:
            said += f". {array} cannot be read ({error})"
    return said


def place_of(path: Path) -> tuple[str, Path] | None:
    """The data set a path is, and where it lies: in the path, or in the one feature file of a folder, as MRL has it."""
    name = data_set_at(path)
    labelled = name is not None and read_data_sets()[name].layout == "labelled"
    if path.is_dir() and (name is None or labelled) and not (path / FEATURES).is_file():
        files = sorted(file for file in path.iterdir() if file.suffix in FEATURE_SUFFIXES)
        inside = [(known, file) for file in files if file.is_file() and (known := data_set_at(file))]
        if len(inside) == 1:
            return inside[0]
    return None if name is None else (name, path)


def data_set_at(path: Path) -> str | None:
    """The data set a path is, by its name, else by the number of training rows."""
    lower = path.name.lower()
    if (pictures := pictures_at(path)) is not None:
        return pictures
    for name, entry in read_data_sets().items():
        named = lower == name or lower == entry.folder.lower()
        if named and entry.layout != "pictures" and (path.is_dir() or path.is_file()):
            return name
    if path.is_file() and path.suffix in FEATURE_SUFFIXES:
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
