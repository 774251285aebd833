"""The index of a source from the folder of caches: a service that starts again need not compute its vectors again."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from truepair.data.pairs import Pairs
from truepair.errors import InputError, TruepairError
from truepair.files import cache_folder
from truepair.search.embedder import Embedder
from truepair.search.index import Index, build_index, load_index
from truepair.training.setup import fingerprint

LEAST_KEPT = 1000
"""Vectors; fewer are computed sooner than they are looked for."""
DAYS = 30
"""An index that nobody has asked for as long is removed when another one is kept."""


def kept_index(embedder: Embedder, pairs: Pairs, before_batch: Callable[[], None], say: Callable[[str], None]) -> Index:
    """The index of some pairs: the kept one of the same model and the same pairs, or a new one, which is then kept.

    Args:
        before_batch: called before every batch of a new one; what it raises ends the building.
        say: told, in a sentence, that a new one cannot be kept; it serves all the same.

    Raises:
        InputError: the embedder does not read such pairs, or a vector is not finite.
    """
    if not embedder.computes or len(pairs.images) + len(pairs.texts) < LEAST_KEPT:
        return build_index(embedder, pairs, before_batch=before_batch)
    folder = place(embedder, pairs)
    try:
        found = load_index(folder, embedder, pairs)
        os.utime(folder)
        return found
    except (InputError, OSError):  # there is none, or it is damaged
        pass
    built = build_index(embedder, pairs, before_batch=before_batch)
    try:
        keep(built, folder)
    except (TruepairError, OSError) as error:
        say(f"its index is not kept for the next start: {error}")
    return built


def place(embedder: Embedder, pairs: Pairs) -> Path:
    """Where the index of some pairs is kept: in the folder of caches, by model, pairs and names."""
    digest = hashlib.blake2b(f"{embedder.digest()} {fingerprint(pairs)}".encode(), digest_size=16)
    for name in pairs.images.ids:
        digest.update(name.encode() + b"\0")
    return cache_folder() / f"index-{digest.hexdigest()}"


def keep(index: Index, folder: Path) -> None:
    """Write it beside its place and move it there whole: two services may do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_old(folder.parent)
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.tmp")
    try:
        index.save(beside)
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def remove_old(folder: Path) -> None:
    """Remove indexes that were not asked for in `DAYS`, and what a service that was killed has left of one."""
    for path in (*folder.glob("index-*"), *folder.glob(".index-*.tmp")):
        if path.stat().st_mtime < time.time() - 86_400 * DAYS:
            shutil.rmtree(path, ignore_errors=True)
