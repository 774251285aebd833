"""Hugging Face's imagefolder with splits: `train/metadata.jsonl`, `test/metadata.csv`, each with its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from truepair.data.config import Reading
from truepair.data.formats.format import Format
from truepair.data.formats.tables.tables import TableCollection, Tables
from truepair.data.splits import NAMES, named
from truepair.errors import InputError

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_TABLES = Tables()


class SplitFolders(Format):
    """A folder for each split, named as the field names splits. Classes are numbered within one table: no labels."""

    holds = "folders of splits, each with its table"
    understood = "a folder for each split (train/, test/, …) with metadata.csv, .jsonl or .parquet (imagefolder)"
    options = _TABLES.options - {"table", "label", "dev_share", "test_share", "split_seed"}
    collection = TableCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return bool(self.splits(source, reading))

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        known = {name for names in NAMES.values() for name in names}
        folders = [path for path in Path(source).iterdir() if path.name in known] if Path(source).is_dir() else []
        return tuple(sorted(path.name for path in folders if any((path / name).is_file() for name in METADATA)))

    def open(self, source: str | Path, split: str | None, reading: Reading) -> TableCollection:
        splits = self.splits(source, reading)
        wanted = named(split or "train", splits)
        if len(wanted) != 1:
            raise InputError(f"{source} has the splits {', '.join(splits)}; name one of them, or open its folder")
        folder = Path(source) / wanted[0]
        found = _TABLES.open(folder, None, replace(reading, table=_metadata(folder)))
        found.name = f"{Path(source).name}/{wanted[0]}"
        found.pairs = replace(found.pairs, name=found.name)
        return found


def _metadata(folder: Path) -> str:
    found = [name for name in METADATA if (folder / name).is_file()]
    if len(found) > 1:
        raise InputError(f"{folder} holds {' and '.join(found)}; leave one of them there")
    return found[0]
