"""Cross-fitting: robust models trained on folds, every pair scored by a model that never saw it.

A model that trained on a pair may have learned it by heart, right or wrong; one that did not can only find it plausible
or not. What the other models came to believe of the pair while they trained on it is evidence, too (the indicator
`memory`). Into every training a few synthetic mismatches are mixed, so that the memory of a mismatch can be measured.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.options import CrossFitting
from truepair.audit.scoring.evidence import Evidence, HeldOut, NearestCopies, evidence_of
from truepair.audit.scoring.folds import Folds, make_folds
from truepair.audit.scoring.local_ranks import MOST_PAIRS, ranks_of_spaces
from truepair.audit.scoring.model_space import ModelSpace
from truepair.audit.scoring.other_captions import OtherCaptions
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.scoring.scoring_folder import kept_columns
from truepair.audit.scoring.synthetic_mismatches import KINDS
from truepair.correspondence.calibration import logit
from truepair.data.pairs import Array, Pairs
from truepair.engines.config import GlobalConfig, MLPConfig
from truepair.errors import RunFolderError
from truepair.files import read_json_object, write_json_atomically
from truepair.progress import Progress, TimeLeft
from truepair.seeding import generator
from truepair.training.fit import Run, fit, open_run
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup, fingerprint

RECIPE = 2
"""Counts changes to what the folder holds."""


def cross_fit(
    pairs: Pairs, options: CrossFitting, folder: Path, *, bank: int, seed: int, progress: Progress | None = None
) -> ScoredPairs:
    """Train the models of all folds and score every pair. What the folder holds already is not done again.

    Args:
        options: folds, method and length of training.
        folder: for the models and the scores of each fold; made if missing.
        bank: how many pairs each pair is compared with.

    Raises:
        InputError: the pairs are too few, or cannot be trained on.
        RunFolderError: the folder belongs to other pairs or options.
    """
    progress = progress or Progress(False)
    folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder, pairs, {**asdict(options), "bank": bank, "seed": seed})
    folds = make_folds(pairs, folds=options.folds, synthetic_share=options.synthetic_share, seed=seed)
    size, clock = len(folds.pairs), TimeLeft(options.folds)
    columns: dict[str, Array] = {}
    beliefs = np.full((options.folds, size), np.nan)
    bare = pairs.without_truth()
    others, spaces = OtherCaptions(bare), list[ModelSpace]()
    for fold in range(options.folds):
        progress.say(f"training model {fold + 1} of {options.folds}")
        run = train_fold(folds, fold, options, folder / f"fold{fold}", seed=seed, progress=progress, clock=clock)
        beliefs[fold, folds.trained_on(fold)] = remembered(run)
        held_out = folds.held_out(fold)
        given = held_out[held_out < folds.given]
        space = ModelSpace(
            run.model, bare, given, bank_size=bank, seed=seed, place=fold, device=options.device, others=others
        )
        images, captions = folds.image_of[held_out], folds.caption_of[held_out]
        scores = kept_columns(folder / f"fold{fold}.safetensors", space.scores, images, captions)
        for name, values in scores.items():
            columns.setdefault(name, np.empty(size, dtype=np.float32))[held_out] = values
        spaces.append(space)
    unseen, copies = [], []
    for fold, space in enumerate(spaces):  # of mismatches that no model trained on
        random = kept_columns(folder / f"unseen{fold}.safetensors", space.mismatched, "random", space.covered)
        unseen.append(evidence_of(random))
        rng = generator(seed, "audit nearest copies", fold)
        copies.append(kept_columns(folder / f"nearest{fold}.safetensors", space.nearest_copies, space.covered, rng))
    columns["memory"] = np.nanmean(beliefs, axis=0).astype(np.float32)
    evidence = evidence_of(columns, np.nanmean(logit(beliefs), axis=0))
    whole = Evidence(columns, evidence)
    return ScoredPairs(
        rows=np.arange(folds.given),
        given=whole.take(np.arange(folds.given)),
        synthetic={kind: whole.take(folds.of_kind(kind)) for kind in KINDS},
        spaces=spaces,
        bank=min(bank, min(len(space.covered) for space in spaces)),
        held_out=HeldOut(evidence[: folds.given, :-1], np.concatenate(unseen)),
        nearest=NearestCopies(
            evidence[: folds.given, :-1],
            columns["similarity"][: folds.given],
            np.concatenate([evidence_of(dict(table)) for table in copies]),
            np.concatenate([table["similarity"] for table in copies]),
        ),
        local=ranks_of_spaces((space.sample(MOST_PAIRS) for space in spaces), generator(seed, "audit local ranks")),
    )


def check_folder(folder: Path, pairs: Pairs, options: dict[str, Any]) -> None:
    """Begin in the folder, or go on with the very same audit; a RunFolderError where it holds another one."""
    asked = {"recipe": RECIPE, "pairs": fingerprint(pairs), "options": options}
    kept = folder / "crossfit.json"
    if not kept.exists():
        write_json_atomically(kept, asked)
    elif read_json_object(kept, "what an audit wrote", error=RunFolderError) != asked:
        raise RunFolderError(
            f"{folder} holds an audit of other pairs, with other options or of another version; choose another --out, "
            "or remove that folder"
        )


def train_fold(
    folds: Folds, fold: int, options: CrossFitting, path: Path, *, seed: int, progress: Progress, clock: TimeLeft
) -> Run:
    """The model that knows nothing of a fold. Goes on with a run that was cut off.

    Where no bars are drawn, a line an epoch says how far the models are.
    """
    kept = RunFolder(path)
    if kept.finished:
        return open_run(path)

    def told(epoch: int, epochs: int) -> None:
        left = clock.left(fold + epoch / epochs)
        if epoch and not (progress.bars or progress.quiet):
            progress.say(f"model {fold + 1} of {options.folds}, epoch {epoch} of {epochs}; training: {left}")

    told(0, 1)
    trained_on = folds.trained_on(fold)
    engine = GlobalConfig if folds.pairs.texts.features is None else MLPConfig
    return fit(
        folds.pairs.take(trained_on),
        method=options.method,
        setup=Setup(model=engine(width=options.width_for(len(trained_on)))),
        out=path,
        resume=kept.config.exists(),
        progress=progress.bars,
        on_epoch=told,
        epochs=options.epochs_for(len(trained_on)),
        batch_size=min(options.batch_size, len(trained_on)),
        seed=seed + fold,
        device=options.device,
    )


def remembered(run: Run) -> Array:
    """What training came to believe of each of its pairs, (n,) in [0, 1]."""
    belief: Array = read_pair_table(run.folder.pairs, ["p_match"])["p_match"].to_numpy()
    return belief
