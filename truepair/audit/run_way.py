"""Scoring by a finished run: its model, and what it came to believe of the pairs if it was trained on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.audit.crossfit import remembered
from truepair.audit.evidence import Witness, evidence_of, logit
from truepair.audit.model_space import ModelSpace
from truepair.audit.witnessed import Witnessed
from truepair.data.pairs import Pairs
from truepair.training.fit import open_run
from truepair.training.setup import fingerprint


def by_run(pairs: Pairs, run: Path, *, bank: int, seed: int, device: str) -> Witnessed:
    """The witness of a run. Pairs it was trained on have a memory, and no yardstick of known mismatches: these the run
    never trained on, and a model knows what it trained on.

    Raises:
        RunFolderError: there is no finished run.
        InputError: its model takes other features, or has no vector of an item.
    """
    opened = open_run(run)
    everything = np.arange(len(pairs), dtype=np.int64)
    space = ModelSpace(opened.model, pairs.without_truth(), everything, bank_size=bank, seed=seed, device=device)
    columns = space.scores(everything, everything)
    size = min(bank, len(pairs))
    if trained_on_them(opened.folder.read_config(), pairs, len_of=opened.result["pairs"]):
        columns["memory"] = remembered(opened).astype(np.float32)
        evidence = evidence_of(columns, logit(columns["memory"].astype(np.float64)))
        return Witnessed(everything, Witness(columns, evidence), {}, [space], size)
    given = Witness(columns, evidence_of(columns))
    known = {kind: Witness(table, evidence_of(table)) for kind, table in space.known_mismatches().items()}
    return Witnessed(everything, given, known, [space], size)


def trained_on_them(config: dict[str, object], pairs: Pairs, *, len_of: int) -> bool:
    """Whether the pairs are those of the run, by their fingerprint, known truth left aside."""
    if len_of != len(pairs):
        return False
    kept = config.get("pairs")
    train = kept.get("train") if isinstance(kept, dict) else None
    return isinstance(train, dict) and train.get("fingerprint") == fingerprint(pairs)
