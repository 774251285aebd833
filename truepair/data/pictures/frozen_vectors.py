"""The vectors that an encoder of images and texts gives to pairs, computed once.

Those of images are the features that their source was read with, where these are the encoder's. Those of texts are kept
in the folder of the features' cache.
"""

from __future__ import annotations

import hashlib

import numpy as np

from truepair.data.pairs import Array, Images, Texts
from truepair.encoders.encoder import ImageTextEncoder
from truepair.errors import TruepairError
from truepair.files import atomic_file, cache_folder, map_npy
from truepair.progress import Progress

_AT_ONCE = 64
_LEAST_KEPT = 2
"""Captions that are worth a file; the words that somebody searches for are one."""


def image_vectors(images: Images, encoder: ImageTextEncoder, progress: Progress | None = None) -> Array:
    """(n, D) of all images: float16 as features are kept, not normalised.

    Raises:
        InputError: they are the features of something else, and there are no pixels.
    """
    if images.encoder == encoder.identity():
        return images.features.reshape(len(images), -1)
    found = np.empty((len(images), encoder.width), dtype=np.float16)
    with (progress or Progress(None)).count("encoding pictures", len(images), "pictures") as moved:
        for start in range(0, len(images), _AT_ONCE):
            rows = range(start, min(start + _AT_ONCE, len(images)))
            made = encoder.encode([images.prepared(row, encoder) for row in rows])
            found[rows.start : rows.stop] = made[:, 0].astype(np.float16)
            moved(rows.stop)
    return found


def text_vectors(texts: Texts, encoder: ImageTextEncoder, progress: Progress | None = None) -> Array:
    """(n, D) float16 of all captions, from the folder of caches where they are there already.

    Raises:
        TruepairError: the folder cannot be written to.
    """
    if len(texts) < _LEAST_KEPT:
        return encoder.encode_texts(texts.captions).astype(np.float16)
    name = hashlib.blake2b("\0".join(texts.captions).encode(), digest_size=16).hexdigest()
    folder = cache_folder()
    path = folder / f"captions-{name}-{encoder.identity()}.npy"
    try:
        kept = map_npy(path) if path.exists() else None
    except (OSError, ValueError):
        kept = None
    if kept is not None and kept.shape == (len(texts), encoder.width):
        return np.asarray(kept)
    with (progress or Progress(None)).count("encoding captions", len(texts), "captions") as moved:
        found = encoder.encode_texts(texts.captions, moved).astype(np.float16)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TruepairError(
            f"{folder} cannot be made ({error.strerror}); set TRUEPAIR_CACHE to another folder"
        ) from error
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        np.save(file, found)
    return found
