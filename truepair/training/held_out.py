"""Splits that are drawn again after training: none of the pairs that a run was trained on may be among them."""

from __future__ import annotations

from pathlib import Path

from truepair.data.config import DataConfig, Reading
from truepair.data.pairs import Pairs
from truepair.data.splits import plain_name
from truepair.errors import InputError
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder


def check_held_out(run: Path, pairs: Pairs, source: str, split: str, reading: Reading) -> None:
    """Refuse a split drawn by shares that holds pairs the run was trained on.

    The draw depends on the number of images: with one more or fewer than at training, the splits are others altogether.
    Other data than those of the run, a source with splits of its own, the training split, and a run without a table of
    pairs are not looked at.

    Args:
        run: folder of a run, or of a pretrained model.
        pairs: of this split of this source, as drawn now.
        reading: how they were read.

    Raises:
        InputError: a pair is among those of the run's table; names how many are, one of them, and the remedy.
    """
    folder = RunFolder(run)
    if (reading.dev_share is None and reading.test_share is None) or plain_name(split) == "train":
        return
    trained_on = (folder.read_config().get("data") or {}).get("source")
    if trained_on != DataConfig(source).resolved().source or not folder.pairs.exists():
        return
    known = set(read_pair_table(folder.pairs, ["pair_id"]).column("pair_id").to_pylist())
    seen = [name for name in pairs.ids() if name in known]
    if seen:
        raise InputError(
            f"{pairs.name}: {len(seen)} of {len(pairs)} pairs of the split {split!r} are among those that {run} was "
            f"trained on, {seen[0]!r} is one: figures on them would mean nothing. Shares are drawn by the number of "
            f"images ({len(pairs.images)} are {split} now): the data, the shares or the seed are not those of the run. "
            "Give the data as they were then, or a table with a column split that keeps these pairs apart"
        )
