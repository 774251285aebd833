"""Which table of pictures a source means."""

from __future__ import annotations

from pathlib import Path

from truepair.errors import InputError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


def find_table(source: Path, table: str | None) -> Path | None:
    """The one table in the folder `source`, the file `source` itself, or the one named; None where there is none.

    Raises:
        InputError: the named table does not exist or has an unknown suffix, or several lie in the folder.
    """
    if table is not None:
        named = next((path for path in (source / table, Path(table)) if path.is_file()), None)
        if named is None:
            raise InputError(f"{table}: no such table in {source}; it holds {_list(_tables(source))}. Check the name")
        if named.suffix.lower() not in SUFFIXES:
            raise InputError(f"{named} is no table that is understood; expected {', '.join(SUFFIXES)}")
        return named.resolve()
    if source.is_file():
        return source.resolve() if source.suffix.lower() in SUFFIXES else None
    tables = _tables(source)
    # JSON files are often something else, such as a description of the data.
    others = [path for path in tables if path.suffix.lower() != ".json"]
    tables = others if len(others) == 1 else tables
    if len(tables) > 1:
        raise InputError(f"{source} holds several tables: {_list(tables)}. Say which one is meant, by its name")
    return tables[0].resolve() if tables else None


def _tables(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())


def _list(tables: list[Path]) -> str:
    return ", ".join(table.name for table in tables[:20]) or "none"
