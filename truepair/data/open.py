"""`open`: the one way in for data. From the name of a source to its pairs, whatever it is.

A kind of source is one `Format` with its reader and its writer side by side in a folder of `formats/`, and a line here.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.classes import keep_classes
from truepair.data.collection import Collection, PairsCollection
from truepair.data.config import DataConfig, Reading
from truepair.data.formats.embeddings.files import Embeddings
from truepair.data.formats.format import Format
from truepair.data.formats.labelled.feature_files import LabelledFeatures
from truepair.data.formats.labelled.wikipedia import Wikipedia
from truepair.data.formats.precomp.precomp import Precomp
from truepair.data.formats.scenes.source import ScenesFormat
from truepair.data.formats.shards.shards import Shards
from truepair.data.formats.tables.drafts import NO_LABEL
from truepair.data.formats.tables.split_folders import SplitFolders
from truepair.data.formats.tables.tables import Tables
from truepair.data.given.known_pairs import with_known_pairs
from truepair.data.given.pair_scores import with_pair_scores
from truepair.data.label_noise import apply_label_index, inject_label_noise
from truepair.data.noise import apply_noise_index, inject_noise
from truepair.data.pairs import Pairs
from truepair.data.splits import check_shares, named, take_share
from truepair.data.storage.object_store import is_url
from truepair.encoders import FIRST, default_encoder
from truepair.errors import InputError, TruepairError

TABLES, EMBEDDINGS, SCENES = Tables(), Embeddings(), ScenesFormat()
FORMATS: tuple[Format, ...] = (
    SCENES,
    LabelledFeatures(),
    Wikipedia(),
    Precomp(),
    EMBEDDINGS,
    Shards(),
    TABLES,
    SplitFolders(),
)
"""All kinds of sources; the first that recognises a source reads it."""


class UnusedEntries(UserWarning):
    """Some entries of a source cannot be used."""


def open(source: str | Path, split: str | None = None, *, reading: Reading | None = None, **options: Any) -> Collection:
    """The usable pairs of a source, and the problems met on the way. What can be opened can be described, trained on,
    audited and exported: the same pairs in the same order, of the same ids.

    Args:
        source: see the table in `docs/data.md`; what the folder or file holds decides. A URL may hold embeddings.
        split: train, dev (or val), test (or testall), or any other name that the source gives to a part of it. Without
            one, tables, shards and embeddings are read whole, all others give "train". Of a source without splits,
            "train" is all of it.
        options: those of `Reading`: table, caption, image, label, dev_pairs, dev_share, test_share, split_seed,
            encoder, cache, extraction, progress. `reading` gives several in one.

    Raises:
        InputError: the source is none of these, an option does not go with it, there is no such split, or nothing in
            it can be used; the message names file, row and remedy.
        TruepairError: the cache folder cannot be written to, or an object store fails.
    """
    reading = replace(reading or Reading(), **options)
    format = format_of(source, reading)
    check_options(format, source, reading)
    shares = reading.dev_share is not None or reading.test_share is not None
    if split is None and not shares:
        return format.open(source, None, reading)
    names = format.splits(source, reading)
    if names and shares:
        raise InputError(
            f"{source} has splits of its own ({', '.join(names)}); leave out --dev-share and --test-share, which draw "
            "some where there are none"
        )
    if names or (split == "train" and not shares):
        return format.open(source, split if names else None, reading)
    split = split or "train"
    check_shares(source, split, reading.dev_share, reading.test_share)
    whole = format.open(source, None, reading)
    part = take_share(whole.load(), split, reading.dev_share, reading.test_share, seed=reading.split_seed)
    return PairsCollection(replace(part, name=f"{whole.name}/{split}"), problems=whole.problems)


def load(source: str | Path, split: str = "train", *, reading: Reading | None = None, **options: Any) -> Pairs:
    """The pairs of one split of a source as arrays: `open` in short, for training and evaluation.

    Entries that cannot be used are left out, as `open` leaves them out, and told in a warning (`UnusedEntries`). Where
    a label was asked for, pairs without one are left out as well.

    Raises:
        InputError: as `open`; or there are no two classes in the column `label`.
    """
    reading = replace(reading or Reading(), **options)
    collection = open(source, split, reading=reading)
    pairs = collection.load()  # which rows of embeddings cannot be used is known when they were read
    unused = [problem for problem in collection.problems if not problem.used]
    if unused:
        drawn = reading.dev_share is not None or reading.test_share is not None  # of all: the same for each split
        count = (
            "1 entry cannot be used and was" if len(unused) == 1 else f"{len(unused):,} entries cannot be used and were"
        )
        warnings.warn(
            f"{source if drawn else collection.name}: {count} left out, the first is {unused[0]}. "
            f"`truepair describe {source}` lists them",
            UnusedEntries,
            stacklevel=2,
        )
    return pairs if reading.label is None else _labelled_only(pairs, reading.label)


def _labelled_only(pairs: Pairs, label: str) -> Pairs:
    """The pairs that have a class, those without one and the class of these left out."""
    names = pairs.class_names
    classes = len({*names} - {NO_LABEL})
    if classes < 2:
        raise InputError(f"{pairs.name}: the column {label!r} holds {classes} classes; expected two or more")
    if pairs.labels is None or NO_LABEL not in names:
        return pairs
    rows = np.flatnonzero(pairs.labels != names.index(NO_LABEL))
    if not len(rows):
        raise InputError(f"{pairs.name}: no pair has a {label!r}, all are empty; choose another column")
    return replace(pairs.take(rows).compact(), class_names=names[:-1])


def format_of(source: str | Path, reading: Reading | None = None) -> Format:
    """The kind of a source.

    Raises:
        InputError: it is none that is understood, does not exist, or is a URL without embeddings.
    """
    reading = reading or Reading()
    if not str(source):
        raise InputError('DATA is empty (""); give a file, a folder ("." for this one), a URL or "scenes"')
    if is_url(source):
        if not EMBEDDINGS.recognises(source, reading):
            raise InputError(no_embeddings_there(source))
        return EMBEDDINGS
    kinds = FORMATS if reading.table is None else (TABLES,)
    found = next((format for format in kinds if format.recognises(source, reading)), None)
    if found is None:
        what = "does not exist" if not Path(source).exists() else "is none of the inputs that are understood"
        understood = "; ".join(format.understood for format in FORMATS)
        raise InputError(f"{source} {what}. Check the path; expected one of: {understood}")
    return found


def check_options(format: Format, source: str | Path, reading: Reading) -> None:
    """Raise InputError for an option that means nothing to the kind of a source."""
    for option in fields(Reading):
        given = getattr(reading, option.name)
        if given != option.default and option.name not in {*format.options, "cache", "extraction", "progress"}:
            raise InputError(
                f"{source} holds {format.holds}, for which there is no option {option.name} ({given!r}); leave it out"
            )


def takes_encoder(source: str | Path, reading: Reading | None = None) -> bool:
    """Whether an encoder describes the source: it holds pictures. Raises InputError as `format_of`."""
    return "encoder" in format_of(source, reading).options


def with_encoder(config: DataConfig) -> DataConfig:
    """The same with the encoder named that describes its pictures; other sources have none."""
    if config.encoder is not None or not takes_encoder(config.source, config.reading):
        return config
    return replace(config, encoder=default_encoder())


def read_config(saved: Any, place: str = "data", *, error: type[TruepairError] = InputError) -> DataConfig:
    """The data that a run kept; runs of earlier versions saw pictures by the built-in windows. A caption option beside
    a source that takes none is dropped: whatever lay in a folder with a .jsonl file got one.

    Raises:
        error: as `DataConfig.read`.
    """
    config = DataConfig.read(saved, place, error=error)
    try:
        options = format_of(config.source, config.reading).options
    except InputError:  # it is gone; who reads it will say so
        return config
    if config.caption in ("all", "first") and "caption" not in options:
        config = replace(config, caption=None)
    return replace(config, encoder=FIRST) if config.encoder is None and "encoder" in options else config


def no_embeddings_there(url: str | Path) -> str:
    """What is said of a URL at which no embeddings are found."""
    return (
        f"{url} holds no embeddings, or none that may be listed. From a store only embeddings are read: a folder with "
        'img_emb/ and text_emb/, one with images.npy and texts.npy, or both arrays by name, "URL/images.npy,'
        'URL/texts.npy". Check the URL, or copy other inputs to this machine first'
    )


def is_drawn(source: str | Path) -> bool:
    """Whether the source is the built-in drawings rather than files."""
    return SCENES.recognises(source, Reading())


def splits_of(source: str | Path, reading: Reading | None = None) -> tuple[str, ...]:
    """The names of the splits a source offers, those of which a file is missing included: `load` says which one."""
    reading = reading or Reading()
    return format_of(source, reading).splits(source, reading)


@dataclass(frozen=True)
class Splits:
    """Training pairs, and the dev and test pairs where the source has them.

    Attributes:
        captions: what a vocabulary is made of where that is more than the captions of the training pairs: of the
            oracle those of all given pairs, so that it reads the words that the methods beside it read.
    """

    train: Pairs
    dev: Pairs | None
    test: Pairs | None
    captions: tuple[str, ...] | None = None


def load_splits(config: DataConfig, *, seed: int) -> Splits:
    """The splits a run needs, with the configured noise in the training pairs.

    In this order: classes with few training pairs are left out of all splits, a label index is applied to all training
    pairs that are left, the first `train_pairs` of them are taken, labels are drawn anew, images are mismatched, pairs
    known to match are marked.

    Raises:
        InputError: as `load`; noise and an index file are both asked for; or images to score, of data without a
            split to score.
    """
    if config.noise and config.noise_index:
        raise InputError("--noise and --noise-index both say how to mismatch the pairs; give one of them")
    if config.label_noise and config.label_noise_index:
        raise InputError("--label-noise and --label-noise-index both say which labels are wrong; give one of them")
    reading = config.reading
    names = splits_of(config.source, reading)
    drawn = {"dev": reading.dev_share, "test": reading.test_share}
    if config.score_images is not None and not any(
        named(split, names) or share is not None for split, share in drawn.items()
    ):
        raise InputError(
            "score_images is for dev and test, but the data have neither; leave it out, or ask for a share of their "
            "images (dev_share, test_share)"
        )
    found = ["train", *(split for split, share in drawn.items() if named(split, names) or share is not None)]
    loaded = {split: load(config.source, split, reading=reading) for split in found}  # one place of equal warnings
    train, dev, test = loaded["train"], loaded.get("dev"), loaded.get("test")
    if config.least_class_pairs is not None:
        train, (dev, test) = keep_classes(train, (dev, test), least=config.least_class_pairs)
    if config.label_noise_index:
        train = apply_label_index(train, Path(config.label_noise_index))
    if config.train_pairs is not None:
        train = train.take(np.arange(min(config.train_pairs, len(train))))
    noise_seed = seed if config.noise_seed is None else config.noise_seed
    if config.label_noise:  # without it nobody knows which labels are right: no truth is made up
        train = inject_label_noise(train, config.label_noise, kind=config.label_noise_kind, seed=noise_seed)
    if config.noise_index:
        train = apply_noise_index(train, Path(config.noise_index))
    elif config.noise:  # the same goes for the pairs
        train = inject_noise(train, config.noise, kind=config.noise_kind, seed=noise_seed)
    captions = None
    if config.oracle:
        captions = train.captions() if train.texts.features is None else None
        train = train.matched_only()
    if config.clean_pairs is not None:
        train = with_known_pairs(train, config.clean_pairs, seed=noise_seed)
    if config.pair_scores is not None:
        train = with_pair_scores(train, Path(config.pair_scores), config.score_column)
    if config.score_images is not None:
        dev, test = (pairs and pairs.first_images(config.score_images) for pairs in (dev, test))
    return Splits(train, dev, test, captions)
