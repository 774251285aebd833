"""Scoring by a finished run: its model, and what it came to believe of the pairs that it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.scoring.cross_attention_space import MOST_REMATCHED, CrossAttentionSpace
from truepair.audit.scoring.evidence import Evidence, NearestCopies, evidence_of
from truepair.audit.scoring.local_ranks import MOST_PAIRS, LocalRanks, ranks_of_spaces
from truepair.audit.scoring.model_space import ModelSpace
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.scoring.vectors import has_vectors
from truepair.correspondence.calibration import logit
from truepair.data.pairs import Array, Pairs
from truepair.data.repeats import caption_key, image_digests
from truepair.methods import learns_from_labels
from truepair.progress import Progress
from truepair.seeding import generator
from truepair.training.fit import Run, open_run
from truepair.training.pair_table import read_pair_table


def score_by_run(
    pairs: Pairs, run: Path, folder: Path, *, bank: int, seed: int, device: str, progress: Progress
) -> ScoredPairs:
    """The evidence of a run.

    A model knows the pairs it was trained on, right or wrong, and no synthetic mismatch can be scored as if it had been
    trained on. So synthetic mismatches are made of the other pairs only, and only these are measured by them; the pairs
    that the run knows have a memory instead. The folder is for what an engine of cross-attention (SGR, SAF) computes;
    it has no vector of an item, and is slow.

    Raises:
        RunFolderError: there is no finished run, or its table of pairs cannot tell what it was trained on.
        InputError: its model takes other features.
    """
    opened, given = open_run(run), pairs.without_truth()
    model, rows = opened.model, np.arange(len(pairs), dtype=np.int64)
    beliefs, by_content = beliefs_of(opened, pairs)
    trained_on = ~np.isnan(beliefs)
    unseen = np.flatnonzero(~trained_on)
    space: ModelSpace | CrossAttentionSpace
    local: list[LocalRanks] = []
    nearest = None
    details: dict[str, Any] = {"trained_on": int(trained_on.sum()), "known_by_content": by_content}
    if has_vectors(model, given, device=device):
        space = ModelSpace(model, given, rows, bank_size=bank, seed=seed, device=device)
        columns, size = space.scores(rows, rows), min(bank, len(pairs))
        local = ranks_of_spaces([space.sample(MOST_PAIRS, unseen)], generator(seed, "audit local ranks"))
        if len(unseen):
            copies = space.nearest_copies(unseen, generator(seed, "audit nearest copies"))
            held = evidence_of(dict(columns))[unseen], columns["similarity"][unseen]
            nearest = NearestCopies(*held, evidence_of(copies), copies["similarity"])
    else:
        with progress.count("comparing", len(given.images) + len(given.texts), "images and captions") as moved:
            space = CrossAttentionSpace(model, given, folder, bank_size=bank, seed=seed, device=device, moved=moved)
            columns, size = space.given_scores(), len(space.entries)
        details["rematched_at_most"] = MOST_REMATCHED
    synthetic = space.synthetic_scores(unseen) if len(unseen) else {}
    memory = None
    if trained_on.any() and not learns_from_labels(opened.result["method"]):  # which believes in labels, not in pairs
        columns["memory"] = beliefs.astype(np.float32)
        memory = logit(beliefs)
    return ScoredPairs(
        rows,
        Evidence(columns, evidence_of(columns, memory)),
        {kind: Evidence(table, evidence_of(table)) for kind, table in synthetic.items()},
        [space],
        size,
        local=local,
        nearest=nearest,
        trained_on=trained_on,
        details=details,
    )


def beliefs_of(run: Run, pairs: Pairs) -> tuple[Array, bool]:
    """(n,) what the run came to believe of each pair in [0, 1], NaN where it was not trained on the pair; and whether
    that was told by the images' content. A RunFolderError where its table cannot be read, or lacks columns.

    A pair is known where the run was trained on the same image with the same words, but for case and spaces. Images are
    told by a digest of their features; by their ids in the table of a run of an older version, which has no digests.
    """
    beliefs = np.full(len(pairs), np.nan)
    if run.result.get("pairs") is None:  # an imported model, trained elsewhere
        return beliefs, True
    table = read_pair_table(run.folder.pairs, ["image", "caption"])
    by_content = "image_digest" in table.column_names
    names: Sequence[Any] = image_digests(pairs.images.features).tolist() if by_content else pairs.images.ids
    trained: dict[tuple[Any, str], list[float]] = {}
    keys = table["image_digest" if by_content else "image"].to_pylist(), table["caption"].to_pylist()
    believed = table["p_match"].to_pylist() if "p_match" in table.column_names else [1.0] * len(keys[0])
    for image, caption, belief in zip(*keys, believed, strict=True):
        trained.setdefault((image, caption_key(caption)), []).append(belief)
    for row, (image, text) in enumerate(zip(pairs.image_index.tolist(), pairs.text_index.tolist(), strict=True)):
        known = trained.get((names[image], caption_key(pairs.texts.captions[text])))
        if known is not None:
            beliefs[row] = known[0]
            known.append(known.pop(0))  # a pair that stands there several times: one after the other
    return beliefs, by_content
