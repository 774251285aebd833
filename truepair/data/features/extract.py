"""`truepair features`: the features of a source's pictures, written to be opened without them.

Features come from the one cache, which an audit and training read as well: pictures are described once, whoever comes
first, and a description that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.config import Reading
from truepair.data.features.options import FeatureOptions
from truepair.data.features.reduction import Projection, check_grid, pooled, principal_components
from truepair.data.open import load, splits_of, takes_encoder
from truepair.data.pairs import Array, IntArray
from truepair.data.selection import taken, write_npy
from truepair.encoders import default_encoder, encoder_of, resolved_name
from truepair.errors import InputError
from truepair.files import atomic_file, read_json_object, write_json_atomically, write_text_atomically

RECORD = "features.json"
_VERSION = 1
_READ = {
    option.name: option.default
    for option in fields(Reading)
    if option.name in ("table", "caption", "image", "label", "dev_share", "test_share", "split_seed")
}
"""Options that say which pairs are in which split, and what records of earlier versions, without them, stand for."""
_PARTS = {"precomp": ("ims.npy", "caps.txt", "ids.txt"), "arrays": ("images.npy", "ids.txt")}


@dataclass(frozen=True)
class Extracted:
    """What was written: `shapes` of the arrays by split, the `bytes` of all, and how many entries were left out."""

    folder: Path
    encoder: str
    shapes: dict[str, tuple[int, ...]]
    bytes: int
    repeated: tuple[str, ...]


def extract_features(
    source: Path | str, out: Path, options: FeatureOptions | None = None, *, reading: Reading | None = None
) -> Extracted:
    """Write the features of all splits of a source of pictures into a folder, new or empty.

    The same call again goes on where an earlier one was cut off, and leaves what is finished as it is.

    Args:
        out: gets, for each split S, `S_ims.npy`, `S_caps.txt`, `S_ids.txt` (precomp) or `S_images.npy`, `S_ids.txt`
            (arrays), `projection.npy` where regions are projected, and `features.json`: how it was made, and that it is
            whole.

    Raises:
        InputError: the source has no pictures, options do not fit the encoder, a split cannot name files, or the folder
            holds something else.
    """
    options, reading = options or FeatureOptions(), reading or Reading()
    if not takes_encoder(source, reading):
        raise InputError(
            f"{source} holds no pictures to describe; expected a folder of pictures with a table, or shards"
        )
    reading = replace(reading, encoder=resolved_name(reading.encoder or default_encoder()))
    encoder = encoder_of(reading.encoder)
    if options.grid is not None:
        check_grid(encoder.regions, options.grid)
    asked = {
        "version": _VERSION,
        "source": str(Path(source).resolve()),
        "encoder": encoder.identity(),
        **asdict(options),
        **{name: getattr(reading, name) for name in _READ},
    }
    names = splits_of(source, reading) or _drawn(reading)
    files = _names_of_files(names)
    _claim(out, asked)
    _check_files(out, options, files.values())
    loaded = {name: load(source, name, reading=reading) for name in names}
    first = loaded.get("train", loaded[names[0]]).images.features
    projection = None
    if options.project is not None:
        projection = principal_components(first, options.project, grid=options.grid, seed=options.seed)
        with atomic_file(out / "projection.npy") as temporary, temporary.open("wb") as file:
            np.save(file, np.concatenate((projection.mean[None], projection.basis.T)))
    shapes, total, repeated = {}, 0, []
    for name, pairs in loaded.items():
        written = files[name]
        order = np.argsort(pairs.image_index, kind="stable")
        rows = _precomp_rows(pairs.image_index[order]) if options.layout == "precomp" else np.unique(pairs.image_index)
        array = out / f"{written}_{_PARTS[options.layout][0]}"
        shapes[written] = _write(array, pairs.images.features, rows, options.grid, projection)
        total += array.stat().st_size
        _lines(out / f"{written}_ids.txt", [pairs.images.ids[row] for row in rows])
        if options.layout == "precomp":
            _lines(out / f"{written}_caps.txt", [pairs.texts.captions[row] for row in pairs.text_index[order]])
            repeated += [written] if len(rows) > len(np.unique(rows)) else []
    made = {"name": reading.encoder, "shapes": shapes, "kept_variance": projection and projection.kept}
    write_json_atomically(out / RECORD, {**asked, **made, "finished": True})
    return Extracted(out, reading.encoder or "", shapes, total, tuple(repeated))


def _drawn(reading: Reading) -> tuple[str, ...]:
    """The splits of a source that has none of its own."""
    shares = {"dev": reading.dev_share, "test": reading.test_share}
    return ("train", *(name for name, share in shares.items() if share is not None))


def _names_of_files(names: Sequence[str]) -> dict[str, str]:
    """Split → what its files begin with; refuses names that would lead elsewhere, and two that become one."""
    files: dict[str, str] = {}
    for name in names:
        written = {"val": "dev"}.get(name, name)
        if set(name) & set("/\\\0"):
            raise InputError(
                f"the split {name!r} cannot name a file: there is a / or \\ in it. Rename it in the table first"
            )
        other = next((split for split, file in files.items() if file == written), None)
        if other is not None:
            raise InputError(
                f"the splits {other!r} and {name!r} would both become {written}_ims.npy or the like, and one would be "
                "lost. Give both one name in the table, or rename one"
            )
        files[name] = written
    return files


def _check_files(out: Path, options: FeatureOptions, splits: Iterable[str]) -> None:
    """Refuse a folder with files of a split that is not written now, and would be read as one beside the others."""
    ours = {f"{split}_{part}" for split in splits for part in _PARTS[options.layout]}
    endings = tuple(f"_{part}" for part in {*_PARTS["precomp"], *_PARTS["arrays"]})
    foreign = sorted(path.name for path in out.iterdir() if path.name.endswith(endings) and path.name not in ours)
    if foreign:
        raise InputError(
            f"{out} holds {foreign[0]}, which is of no split that is written there now: its pictures would be read "
            "beside the others. Nothing was changed; take it away, or choose another --out"
        )


def _claim(out: Path, asked: dict[str, Any]) -> None:
    """Note in the folder what is written there; refuse one that holds something else."""
    record = out / RECORD
    try:
        out.mkdir(parents=True, exist_ok=True)
        held = any(out.iterdir())
    except OSError as error:
        raise InputError(
            f"{out} cannot be used as a folder ({error.strerror or error}); choose another --out"
        ) from error
    if held and not record.exists():
        raise InputError(f"{out} is not empty and holds no features; nothing was changed. Choose another --out")
    if held:
        found = read_json_object(record, "what features were made of")
        for name, value in asked.items():
            before = found.get(name, _READ.get(name))
            if before != value:
                raise InputError(
                    f"{out} holds features with {name} {before!r}, now it is {value!r}; nothing was changed. Choose "
                    "another --out"
                )
        return
    write_json_atomically(record, {**asked, "finished": False})


def _precomp_rows(images: IntArray) -> IntArray:
    """The image of each row to write, of the images of all captions in order.

    The layout knows one number of captions an image, k, for all: where images have different numbers, k divides all of
    them, and an image is written more than once.
    """
    counts = np.bincount(images)
    return images[:: int(np.gcd.reduce(counts[counts > 0]))]


def _write(
    path: Path, features: Array, rows: IntArray, grid: int | None, projection: Projection | None
) -> tuple[int, ...]:
    """The features of some images in float16, in pieces; one region an image is one vector. Returns the shape."""
    regions = features.shape[1] if grid is None else grid**2
    width = features.shape[2] if projection is None else projection.basis.shape[1]
    shape = (len(rows), width) if regions == 1 else (len(rows), regions, width)

    def pieces() -> Iterator[Array]:
        for piece in taken(features, rows):
            piece = piece if grid is None else pooled(piece, grid)
            piece = piece if projection is None else projection(piece.astype(np.float32))
            yield piece.astype(np.float16).reshape(len(piece), *shape[1:])

    with atomic_file(path) as temporary:
        write_npy(temporary, shape, np.float16, pieces())
    return shape


def _lines(path: Path, lines: list[str]) -> None:
    write_text_atomically(path, "".join(f"{line}\n" for line in lines))
