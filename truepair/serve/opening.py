"""From the folders of runs and audits to what is served, with the data they come from as they were read then."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.config import DataConfig, Reading
from truepair.data.formats.scenes.name import is_scenes
from truepair.data.noise import apply_noise_index, inject_noise
from truepair.data.open import load, read_config
from truepair.data.open import open as open_data
from truepair.data.pairs import Images, Pairs
from truepair.data.pictures.pictures import PlacedPictures
from truepair.decisions.training import load_decided_splits
from truepair.encoders import encoder_of
from truepair.encoders.encoder import Encoder, ImageTextEncoder
from truepair.errors import InputError, RunFolderError, TruepairError
from truepair.files import read_json_object, require_file
from truepair.phrases import counted
from truepair.search.embedder import EncoderEmbedder, GivenVectors
from truepair.serve.pictures import Pictures
from truepair.serve.search import Searcher, embedder_of_run
from truepair.serve.sources import Source, joined_places, label_column, named
from truepair.serve.table import PairTable
from truepair.training.fit import Run, open_run
from truepair.training.held_out import seen_in_training
from truepair.training.jobs import reading_of_run
from truepair.training.pair_table import read_pair_table
from truepair.training.setup import fingerprint

SUMMARY = "summary.json"
_OF_A_RUN = ("p_match", "flagged", "division", "given_label")
"""Columns that a run's table adds to the pairs of its data."""

AUDIT_NEEDS = ("pair_id", "row", "image", "caption", "p_match", "flagged")
AUDIT_MAY = (
    *("similarity", "reason", "duplicate_kind"),
    *("proposed_caption", "proposed_caption_pair", "proposed_caption_fit"),
)


@dataclass(frozen=True)
class Asked:
    """How the data of all sources are found.

    Attributes:
        data: where they lie now; None for where each was trained or audited.
        split: which pairs of a run's data; None for those it was trained on.
        follow_links: show pictures that links outside the folder of the data lead to.
    """

    data: str | None = None
    split: str | None = None
    follow_links: bool = False


def open_sources(paths: Sequence[Path], asked: Asked | None = None) -> list[Source]:
    """Everything that is served, in the order given.

    Raises:
        InputError, RunFolderError: a folder holds neither a finished run nor an audit, or the data of a run are gone.
    """
    asked = asked or Asked()
    return [open_source(path, name, asked) for path, name in zip(paths, named(paths), strict=True)]


def open_source(path: Path, name: str, asked: Asked) -> Source:
    """A run or an audit by its folder."""
    if (path / "config.json").is_file():
        return _of_run(path, name, asked)
    if (path / SUMMARY).is_file() and (path / "pairs.parquet").is_file():
        return _of_audit(path, name, asked)
    what = "does not exist" if not path.exists() else "holds neither a run nor an audit that is finished"
    raise RunFolderError(f"{path} {what}; give the folder that truepair train or truepair audit wrote (its --out)")


def _of_run(path: Path, name: str, asked: Asked) -> Source:
    run = open_run(path)
    source, pairs, trained_on = _data_of_run(run, asked)
    columns, notices = columns_of(pairs), _seen(run, pairs, source, asked.split or "train")
    if trained_on and run.folder.pairs.exists():
        known = read_pair_table(run.folder.pairs)
        columns, missing = _with_columns(columns, known)
        if missing:
            notices.append(
                f"{counted(missing, 'pair')} of the data {'is' if missing == 1 else 'are'} not in the run's table: the "
                "data have changed since it was trained"
            )
    places = np.arange(len(pairs), dtype=np.int64)
    table = PairTable(columns, origin=_origins(pairs, places), label=label_column(pairs, places))
    made = Source(name, "run", path, table, pairs, places, _pictures(pairs, source, asked), notices, run)
    made.searcher = Searcher(made, partial(embedder_of_run, made))
    return made


def _seen(run: Run, pairs: Pairs, source: str, split: str) -> list[str]:
    """That a split drawn again holds pairs of the training, as a notice: they may be searched, but are not held out."""
    seen = seen_in_training(run.path, pairs, source, split, reading_of_run(run.path, source))
    if seen is None:
        return []
    return [f"{seen.told('this run', 'what it finds among them says nothing of data that it has not seen')}."]


def _data_of_run(run: Run, asked: Asked) -> tuple[str, Pairs, bool]:
    """(source, pairs, whether these are the training pairs as the run saw them)."""
    config = run.folder.read_config()
    saved, split = config.get("data"), asked.split or "train"
    if saved is None and asked.data is None:
        raise InputError(f"{run.path} was started from Python, and its data are not known here; name them with --data")
    if saved is None:
        assert asked.data is not None
        return asked.data, load(asked.data, split, reading=reading_of_run(run.path, asked.data)), False
    known = read_config(saved, f"{run.folder.config}: data", error=RunFolderError)
    seed = (config.get("training") or {}).get("seed", 0)
    if asked.data is None or DataConfig(asked.data).resolved().source == known.source:
        if "," not in known.source and "://" not in known.source and _gone(known.source):
            raise InputError(
                f"{run.path} was trained on {known.source}, which is not there any more; say where the data lie now "
                "with --data"
            )
        return known.source, _split_of(known, seed, split, run.folder.decisions), split == "train"
    moved = replace(known, source=asked.data)
    try:
        pairs = _split_of(moved, seed, split, run.folder.decisions)
        same = fingerprint(pairs) == ((config.get("pairs") or {}).get(split) or {}).get("fingerprint")
    except InputError:
        same = False
    if same:
        return asked.data, pairs, split == "train"
    return asked.data, load(asked.data, split, reading=reading_of_run(run.path, asked.data)), False


def _gone(source: str) -> bool:
    return not is_scenes(source) and not Path(source).exists()


def _split_of(config: DataConfig, seed: int, split: str, kept: Path) -> Pairs:
    if split in ("train", "dev", "test"):
        found: Pairs | None = getattr(load_decided_splits(config, seed=seed, kept=kept), split)
        if found is None:
            raise InputError(f"{config.source} has no split {split!r} for this run; choose another --split")
        return found
    return load(config.source, split, reading=config.reading)


def _of_audit(path: Path, name: str, asked: Asked) -> Source:
    if asked.split is not None:
        raise InputError(f"{path} is an audit, whose pairs are those it audited; leave out --split")
    options = read_json_object(path / SUMMARY, "the figures of an audit").get("options") or {}
    columns = _audit_table(path / "pairs.parquet")
    source, notices = asked.data or options.get("source"), []
    pairs: Pairs | None = None
    if source is None:
        notices.append("The audit was made from Python: say where its data lie with --data to see pictures.")
    else:
        try:
            pairs = _audited(str(source), options)
        except TruepairError as error:
            if asked.data is not None:
                raise
            notices.append(f"No pictures: {error}. Say where the data lie now with --data.")
    places = np.full(columns.num_rows, -1, dtype=np.int64) if pairs is None else joined_places(columns, pairs)
    lost = int((places < 0).sum())
    if pairs is not None and lost == len(places):
        raise InputError(f"{source} has none of the pairs that {path} audited; name the data it was made from (--data)")
    if pairs is not None and lost:
        notices.append(
            f"{counted(lost, 'audited pair')} cannot be found in {pairs.name} any more: shown without picture."
        )
    table = PairTable(columns, origin=_origins(pairs, places), label=label_column(pairs, places))
    made = Source(name, "audit", path, table, pairs, places, _pictures(pairs, str(source), asked), notices)
    _search_audit(made, options)
    return made


def _search_audit(source: Source, options: dict[str, Any]) -> None:
    """Give an audit what searches it: the run or the encoder that scored it, or the vectors it audited."""
    pairs = source.pairs
    if pairs is None:
        source.why_not = "its data are not at hand; say where they lie with --data"
        return
    if options.get("run"):
        try:
            source.run = open_run(options["run"])
        except RunFolderError as error:
            source.why_not = f"the run that scored it is not at hand ({error})"
            return
        source.searcher = Searcher(source, partial(embedder_of_run, source))
    elif pairs.texts.features is not None and pairs.images.features.ndim == 2:
        source.searcher, source.reads_words = Searcher(source, partial(GivenVectors, pairs)), False
    elif isinstance(made := _encoder(options.get("encoder")), ImageTextEncoder):
        source.searcher = Searcher(source, partial(EncoderEmbedder, made))
    else:
        source.why_not = (
            "an audit by cross-fitting keeps no model, hence no vectors. Serve a run of the data beside it, or audit "
            "with --run or with an encoder of images and texts"
        )


def _encoder(name: str | None) -> Encoder | None:
    """The encoder that an audit names; None where it names none, or that is not at hand."""
    try:
        return None if name is None else encoder_of(name)
    except InputError:
        return None


def _audit_table(path: Path) -> Any:
    """The columns of an audit's table that are served."""
    import pyarrow
    from pyarrow import parquet

    try:
        require_file(path)
        known = parquet.read_schema(path).names
        missing = [name for name in AUDIT_NEEDS if name not in known]
        if missing:
            raise InputError(f"{path} lacks the column {missing[0]}; it is not the table of an audit")
        return parquet.read_table(path, columns=[name for name in (*AUDIT_NEEDS, *AUDIT_MAY) if name in known])
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}); restore it from a copy") from error


def _audited(source: str, options: dict[str, Any]) -> Pairs:
    """The pairs that an audit saw, the noise of a trial included."""
    names = ("table", "caption", "image", "label", "encoder")
    reading = Reading(**{name: options[name] for name in names if options.get(name) is not None})
    pairs = open_data(source, options.get("split"), reading=reading).load()
    if options.get("noise_index"):
        return apply_noise_index(pairs, Path(options["noise_index"]))
    if options.get("noise"):
        kind, seed = options.get("noise_kind", "caption"), int(options.get("noise_seed") or 0)
        return inject_noise(pairs, float(options["noise"]), kind=kind, seed=seed)
    return pairs


def columns_of(pairs: Pairs) -> Any:
    """The columns that every table has, of pairs without one."""
    import pyarrow

    names, captions = pyarrow.array(pairs.images.ids), pyarrow.array(pairs.texts.captions)
    return pyarrow.table(
        {
            "pair_id": pyarrow.array(pairs.ids(), pyarrow.string()),
            "row": pairs.source_rows,
            "image": names.take(pyarrow.array(pairs.image_index)),
            "caption": captions.take(pyarrow.array(pairs.text_index)),
        }
    )


def _with_columns(columns: Any, known: Any) -> tuple[Any, int]:
    """The columns with those that a run's table adds, and how many pairs that table lacks."""
    from pyarrow import compute

    found = compute.index_in(columns["pair_id"], known["pair_id"].combine_chunks())
    for name in _OF_A_RUN:
        if name in known.column_names:
            columns = columns.append_column(name, known[name].take(found))
    return columns, int(found.null_count)


def _origins(pairs: Pairs | None, places: Any) -> Any:
    """The shard or the folder that the picture of each pair lies in, as an arrow column; None where all lie in one."""
    if pairs is None or not isinstance(pairs.images.files, PlacedPictures):
        return None
    import pyarrow

    files = pairs.images.files
    lying = [files.place(row) for row in files.rows.tolist()]
    names = [place.file if place.size >= 0 else place.file.rpartition(os.sep)[0] for place in lying]
    if len(set(names)) < 2:
        return None
    shared = os.path.commonpath(set(names))
    shown = pyarrow.array([*(os.path.relpath(name, shared) for name in names), ""])
    images = np.where(places >= 0, pairs.image_index[places], len(names))
    return shown.take(pyarrow.array(images))


def _pictures(pairs: Pairs | None, source: str, asked: Asked) -> Pictures | None:
    if pairs is None:
        return None
    return Pictures(pairs.images, None if asked.follow_links else folder_of(pairs.images, source))


def folder_of(images: Images, source: str) -> Path | None:
    """What the pictures of a source must lie in: its folder, or that of its table."""
    if images.files is None:
        return None
    return Path(source) if Path(source).is_dir() else Path(source).parent
