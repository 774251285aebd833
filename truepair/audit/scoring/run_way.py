"""Scoring by a finished run: its model, and what it came to believe of the pairs if it was trained on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from truepair.audit.progress_bar import bar
from truepair.audit.scoring.cell_space import MOST_REMATCHED, CellSpace
from truepair.audit.scoring.crossfit import remembered
from truepair.audit.scoring.evidence import Witness, evidence_of, logit
from truepair.audit.scoring.model_space import ModelSpace
from truepair.audit.scoring.vectors import has_vectors
from truepair.audit.scoring.witnessed import Witnessed
from truepair.audit.verdict.local_ranks import MOST_PAIRS, local_share
from truepair.data.pairs import Pairs
from truepair.methods import learns_from_labels
from truepair.seeding import generator
from truepair.training.fit import Run, open_run
from truepair.training.pair_table import read_pair_table


def by_run(
    pairs: Pairs, run: Path, folder: Path, *, bank: int, seed: int, device: str, progress: bool | None = None
) -> Witnessed:
    """The witness of a run. Pairs it was trained on have a memory, and no yardstick of known mismatches: these the run
    never trained on, and a model knows what it trained on.

    Args:
        folder: for what a local engine (SGR, SAF) computes; it has no vector of an item, and is slow.

    Raises:
        RunFolderError: there is no finished run.
        InputError: its model takes other features.
    """
    opened, given = open_run(run), pairs.without_truth()
    model, everything = opened.model, np.arange(len(pairs), dtype=np.int64)
    space: ModelSpace | CellSpace
    if has_vectors(model, given, device=device):
        space = ModelSpace(model, given, everything, bank_size=bank, seed=seed, device=device)
        columns, size = space.scores(everything, everything), min(bank, len(pairs))
    else:
        with bar("items", len(given.images) + len(given.texts), progress) as moved:
            space = CellSpace(model, given, folder, bank_size=bank, seed=seed, device=device, moved=moved)
            columns, size = space.given_scores(), len(space.entries)
    details = {"bank": size, "trained_on_these_pairs": trained_on_them(opened, pairs)}
    yardstick: dict[str, Witness] = {}
    if not details["trained_on_these_pairs"]:
        evidence = evidence_of(columns)
        yardstick = {kind: Witness(table, evidence_of(table)) for kind, table in space.known_mismatches().items()}
    elif learns_from_labels(opened.result["method"]):  # it believes in labels, not in pairs
        evidence = evidence_of(columns)
    else:
        columns["memory"] = remembered(opened).astype(np.float32)
        evidence = evidence_of(columns, logit(columns["memory"].astype(np.float64)))
    witness = Witnessed(everything, Witness(columns, evidence), yardstick, [], size, details=details)
    if isinstance(space, ModelSpace):
        local = local_share([space.sample(MOST_PAIRS)], generator(seed, "audit local ranks"))
        return replace(witness, judges=[space], local=local)
    return replace(witness, cells=space, details={**details, "rematched_at_most": MOST_REMATCHED})


def trained_on_them(run: Run, pairs: Pairs) -> bool:
    """Whether the run was trained on these very pairs, pair by pair. Labels and known truth do not matter."""
    if run.result["pairs"] != len(pairs):  # None for an imported model
        return False
    table = read_pair_table(run.folder.pairs, ["image_index", "image", "caption"])
    if not np.array_equal(table["image_index"].to_numpy(), pairs.image_index):
        return False
    if table["image"].to_pylist() != [pairs.images.ids[row] for row in pairs.image_index.tolist()]:
        return False
    return bool(table["caption"].to_pylist() == [pairs.texts.captions[row] for row in pairs.text_index.tolist()])
