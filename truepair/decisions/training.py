"""Training pairs as people left them: what they call mismatched is left out, what they corrected is put right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from truepair.data.config import DataConfig
from truepair.data.open import Splits, load_splits
from truepair.data.pairs import Pairs
from truepair.decisions.files import lines_of
from truepair.decisions.sources import Decided, load_decisions
from truepair.errors import InputError
from truepair.phrases import printable


def load_decided_splits(config: DataConfig, *, seed: int, trust: bool = False, kept: Path | None = None) -> Splits:
    """`truepair.data.open.load_splits`, with the decisions that the configuration names in the training pairs.

    Args:
        trust: mark the pairs that people call matched as known to match, for methods that learn from such.
        kept: as `decided_for`.

    Raises:
        InputError: as there; or there are no such decisions, or they are about other pairs.
    """
    return splits_with(decided_for(config, kept), config, seed=seed, trust=trust)


def decided_for(config: DataConfig, kept: Path | None = None) -> Decided | None:
    """The decisions that a configuration names; None where it names none.

    Args:
        kept: where a run keeps those that it was started with; where that file is, it is read: what a configuration
            names may have been decided on, or moved, since.
    """
    if config.decisions is None:
        return None
    return load_decisions(config.decisions if kept is None or not kept.exists() else kept)


def splits_with(decided: Decided | None, config: DataConfig, *, seed: int, trust: bool = False) -> Splits:
    """The splits of a configuration with these decisions; otherwise as `load_decided_splits`."""
    splits = load_splits(config, seed=seed)
    return splits if decided is None else replace(splits, train=decided_pairs(splits.train, decided, trust=trust))


def lines_to_keep(decided: Decided) -> bytes:
    """Decisions as a run keeps them: JSON Lines with the images and captions that were judged."""
    names = dict.fromkeys([*decided.captions, *decided.images])
    judged = {name: (decided.images.get(name, ""), decided.captions.get(name, "")) for name in names}
    return lines_of(decided.history, judged)


def decided_pairs(pairs: Pairs, decided: Decided, *, trust: bool = False) -> Pairs:
    """The pairs without those that people call mismatched, unless they corrected the caption or accepted another one,
    which stands in its place then; pairs that people are unsure of stay as they are. Raises InputError as
    `Decided.check_image`, or where nothing is left.

    Args:
        trust: mark what matches now as known to match (`Pairs.trusted`), beside what is marked already.
    """
    ids = pairs.ids()
    captions = [printable(pairs.texts.captions[text]) for text in pairs.text_index.tolist()]
    known = {name: place for place, name in enumerate(ids)}
    kept, matched, written = np.ones(len(pairs), dtype=bool), np.zeros(len(pairs), dtype=bool), {}
    current = decided.among([printable(name) for name in ids], captions)
    if pairs.mismatched is not None:
        for place, decision in current.items():
            image = pairs.images.ids[int(pairs.image_index[place])]
            decided.check_image(decision.pair_id, image, mismatched=bool(pairs.mismatched[place]))
    for place, decision in current.items():
        if decision.verdict == "unsure":
            continue
        caption = decision.caption
        if caption is None and decision.partner is not None and decision.partner in known:
            caption = pairs.texts.captions[int(pairs.text_index[known[decision.partner]])]
        if caption is not None:
            written[place] = caption
        kept[place] = matched[place] = caption is not None or decision.verdict == "match"
    if not kept.any():
        raise InputError(
            f"{decided.path}: people call every pair of {pairs.name} mismatched; nothing is left to train on"
        )
    changed = pairs.with_captions(written)
    if trust:
        matched |= False if pairs.trusted is None else pairs.trusted
        changed = replace(changed, trusted=matched)
    return changed.take(np.flatnonzero(kept))
