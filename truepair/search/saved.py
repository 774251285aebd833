"""The folder of an index: `images.npy`, `captions.npy`, `images.parquet`, `captions.parquet` and `index.json`,
which says whether the others are complete. No pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truepair.data.pairs import Array
from truepair.errors import InputError
from truepair.files import atomic_file, map_npy, read_json_object, require_file, write_json_atomically, writing

VERSION = 1
MARK = "index.json"
FILES = ("images.npy", "captions.npy", "images.parquet", "captions.parquet", MARK)


@dataclass(frozen=True)
class Saved:
    """What an index keeps.

    Attributes:
        digest: of the model that made the vectors.
        images, captions: (n, D) and (m, D) float32.
        image_ids, caption_ids, words: names of both, and the captions.
    """

    digest: str
    images: Array
    captions: Array
    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    words: tuple[str, ...]


def write_index(folder: Path, saved: Saved) -> Path:
    """Write it; returns the folder."""
    import pyarrow
    from pyarrow import parquet

    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if held - set(FILES) or (held and MARK not in held):
        raise InputError(f"{folder} holds other things ({sorted(held)[0]}); nothing was changed. Choose a new folder")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_json_atomically(folder / MARK, {"version": VERSION, "complete": False})
    for name, vectors in (("images.npy", saved.images), ("captions.npy", saved.captions)):
        with atomic_file(folder / name) as temporary, writing(folder / name), temporary.open("wb") as file:
            np.save(file, np.asarray(vectors, dtype=np.float32))
    tables = {
        "images.parquet": {"id": saved.image_ids},
        "captions.parquet": {"id": saved.caption_ids, "caption": saved.words},
    }
    for name, columns in tables.items():
        table = pyarrow.table({key: pyarrow.array(values, pyarrow.string()) for key, values in columns.items()})
        with atomic_file(folder / name) as temporary, writing(folder / name):
            parquet.write_table(table, temporary, compression="zstd")
    write_json_atomically(
        folder / MARK,
        {
            "version": VERSION,
            "complete": True,
            "model": saved.digest,
            "images": len(saved.images),
            "captions": len(saved.captions),
        },
    )
    return folder


def read_index(folder: Path) -> Saved:
    """What `write_index` wrote, vectors memory-mapped. Raises InputError: there is none, or it is damaged."""
    import pyarrow
    from pyarrow import parquet

    if not (folder / MARK).is_file():
        raise InputError(f"{folder} holds no index ({MARK} is missing); give the folder that Index.save wrote")
    mark = read_json_object(folder / MARK, "what an index wrote")
    if mark.get("version") != VERSION:
        raise InputError(f"{folder} holds an index of another version of truepair; build it again")
    if mark.get("complete") is not True:
        raise InputError(f"{folder}: the index was cut off while it was written; save it again")
    vectors, names = [], []
    for side in ("images", "captions"):
        try:
            held = map_npy(folder / f"{side}.npy")
            require_file(folder / f"{side}.parquet")
            table = parquet.read_table(folder / f"{side}.parquet")
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise InputError(f"{folder}: its {side} cannot be read ({error}); build the index again") from error
        if held.ndim != 2 or held.dtype != np.float32 or not len(held) == table.num_rows == mark.get(side):
            raise InputError(f"{folder}: its {side} do not fit {MARK}; build the index again")
        vectors.append(held)
        names.append(table)
    try:
        ids = [tuple(table["id"].to_pylist()) for table in names]
        words = tuple(names[1]["caption"].to_pylist())
    except KeyError as error:
        raise InputError(f"{folder}: a table lacks the column {error}; build the index again") from error
    if vectors[0].shape[1] != vectors[1].shape[1]:
        raise InputError(f"{folder}: vectors of images and captions differ in width; build the index again")
    return Saved(str(mark.get("model")), vectors[0], vectors[1], ids[0], ids[1], words)
