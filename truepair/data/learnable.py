"""Pairs from which nothing can be learned, because one side never differs: trained on all the same, with a warning."""

from __future__ import annotations

import numpy as np

from truepair.data.formats.precomp.precomp_files import chunks
from truepair.data.pairs import Array, Pairs
from truepair.data.text import tokenise


def nothing_to_learn(pairs: Pairs) -> list[str]:
    """Why no model can tell these pairs apart, a sentence for each reason; usually none, and found at once."""
    reasons = [_sameness(f"{pairs.name}: all images", pairs.images.features)]
    if pairs.texts.features is not None:
        reasons.append(_sameness(f"{pairs.name}: all texts", pairs.texts.features))
    else:
        captions = iter(pairs.texts.captions)
        words = tokenise(next(captions))
        if all(tokenise(caption) == words for caption in captions):
            reasons.append(f"{pairs.name}: all captions have the same words ({' '.join(words)[:60]!r})")
    return [f"{reason}; nothing can be learned from these pairs, look at their source" for reason in reasons if reason]


def _sameness(what: str, features: Array) -> str:
    if features[0].size == 1:
        return f"{what} are described by a single number, of which a unit vector keeps the sign alone"
    first = np.asarray(features[:1])
    if any((rows != first).any() for _, rows in chunks(features)):
        return ""
    return f"{what} are described by {'the same numbers' if first.any() else 'zeros'}"
