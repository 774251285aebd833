"""The gallery: the images and texts among which queries are ranked; recall at k means little without its size."""

from __future__ import annotations

from truepair.data.pairs import Pairs
from truepair.evaluation.class_retrieval import labelled_items


def gallery(pairs: Pairs, *, by_class: bool = False) -> dict[str, int]:
    """How many `images` and `texts` queries are ranked among.

    Args:
        pairs: what is evaluated on.
        by_class: retrieval by class, which leaves out what stands in no pair; `evaluate` ranks all that is there.

    Raises:
        InputError: by class, as `labelled_items`.
    """
    if by_class:
        return labelled_items(pairs).counts
    return {"images": len(pairs.images), "texts": len(pairs.texts)}
