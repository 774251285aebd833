"""What can be audited: `open_collection` tells the kinds of input apart and opens them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.collection import Collection

__all__ = ["open_collection"]

UNDERSTOOD = """\
- a folder in the field's precomp layout, or a file of labelled features (.mat, .npz, .h5), or scenes
- a folder of pictures with one table (.csv, .tsv, .jsonl, .parquet, Karpathy's .json), or the table itself
- tar shards in the webdataset layout: a .tar, a folder of them, or a pattern such as "train-{000..003}.tar"
- embeddings: a folder with img_emb/ and text_emb/, or two arrays "images.npy,texts.npy"; on this machine or in an
  object store ("s3://bucket/folder")"""


def open_collection(
    source: str | Path,
    *,
    table: str | None = None,
    split: str | None = None,
    caption: str | None = None,
    image: str | None = None,
    label: str | None = None,
    cache: Path | None = None,
    progress: bool | None = None,
) -> Collection:
    """The usable pairs of a source, and the problems met on the way.

    Args:
        source: see `UNDERSTOOD`; what the folder holds decides, in the order of the code below.
            A URL may hold embeddings.
        table: which table of a folder of pictures, if it holds several; else a path, for one that lies elsewhere (the
            paths in it are relative to `source` all the same).
        split: for precomp folders, feature files and scenes "train" by default. Tables and shards are read whole
            without one; a table needs a column `split`, shards names that begin with it.
        caption: column or columns (with commas) of a table, or member or field of shards, that hold captions. "first"
            takes the first caption of each row or sample only; by default all of them are pairs.
        image: column of a table that holds the paths of pictures.
        label: column or field that gives each pair its class.
        cache: folder for the features of pictures; `$TRUEPAIR_CACHE`, else `~/.cache/truepair` by default.
        progress: whether to draw a bar while pictures are described; None draws one on a terminal.

    Raises:
        InputError: the source is none of these, an option does not go with it, or nothing in it can be used.
        TruepairError: the cache folder cannot be written to, or an object store fails.
    """
    from truepair.data.collection import PairsCollection
    from truepair.data.formats.embeddings.files import is_embeddings, open_embeddings
    from truepair.data.formats.shards.shard_names import find_shards, of_split
    from truepair.data.formats.shards.shards import open_shards
    from truepair.data.formats.tables.table_files import find_table
    from truepair.data.formats.tables.tables import open_table
    from truepair.data.open import has_own_labels, is_drawn, load
    from truepair.data.storage.urls import is_url

    if is_url(source):
        if not is_embeddings(source):
            raise InputError(no_embeddings_there(source))
        _refuse(
            source, "embeddings", {"table": table, "caption": caption, "image": image, "split": split, "label": label}
        )
        return open_embeddings(source)
    path = Path(source)
    table_options = {"table": table, "caption": caption, "image": image}
    if table is None and (is_drawn(source) or has_own_labels(source) or any(path.glob("*_ims.npy"))):
        _refuse(source, "features", table_options)
        return PairsCollection(load(source, split or "train", label=label))
    if table is None and is_embeddings(source):
        _refuse(source, "embeddings", {**table_options, "split": split, "label": label})
        return open_embeddings(source)
    if table is None and (shards := find_shards(source)) is not None:
        _refuse(source, "shards", {"image": image})
        name = "/".join(filter(None, (path.name if path.is_dir() else path.parent.resolve().name, split)))
        shards = shards if split is None else of_split(shards, split)
        return open_shards(shards, name=name, caption=caption, label=label, cache=cache, progress=progress)
    found = find_table(path, table)
    if found is not None:
        folder = path.resolve() if path.is_dir() else found.parent
        return open_table(
            folder, found, split=split, image=image, caption=caption, label=label, cache=cache, progress=progress
        )
    what = "does not exist" if not path.exists() else "is none of the inputs that are understood"
    raise InputError(f"{source} {what}. Give one of these:\n{UNDERSTOOD}")


def no_embeddings_there(url: str | Path) -> str:
    """What is said of a URL at which no embeddings are found."""
    return (
        f"{url} holds no embeddings, or none that may be listed. From a store only embeddings are read: a folder with "
        'img_emb/ and text_emb/, one with images.npy and texts.npy, or both arrays by name, "URL/images.npy,'
        'URL/texts.npy". Check the URL, or copy other inputs to this machine first'
    )


def _refuse(source: str | Path, kind: str, options: dict[str, str | None]) -> None:
    given = next((f"{name} ({value!r})" for name, value in options.items() if value is not None), None)
    if given is not None:
        raise InputError(f"{source} holds {kind}, for which there is no option {given}; leave it out")
