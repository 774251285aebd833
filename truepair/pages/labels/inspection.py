"""`inspect_labels`: a finished run in, everything its page of labels says out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from truepair.data.pairs import Array, Images, IntArray
from truepair.evaluation.label_correction import Record, confusion, label_record, mean_distribution
from truepair.pages.labels.table import LabelTable, read_label_table
from truepair.pages.labels.trained import Trained, find_data, look_at
from truepair.training.fit import open_run
from truepair.training.run_folder import RunFolder


@dataclass(frozen=True)
class Inspection:
    """What a run made of its labels, and what its model finds.

    Attributes:
        name, method, split: of the run, and the split the model is looked at with.
        record: as `label_record`.
        against: what the rows of the next two are: `true` labels, or `given` ones where the truth is unknown.
        counts: (K, K) pairs by that label (row) and corrected label (column).
        heat: (K, K) mean corrected distribution by that label; NaN for classes without pairs.
        images: the training images, to show; None without data.
        trained: None without data.
        missing: why there are no data; empty where there are.
    """

    name: str
    method: str
    split: str
    table: LabelTable
    record: Record
    against: str
    counts: IntArray
    heat: Array
    images: Images | None
    trained: Trained | None
    missing: str


def inspect_labels(
    run: Path,
    *,
    split: str = "test",
    device: torch.device | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Inspection:
    """What a finished run made of the class labels it was given.

    Args:
        run: folder of a finished run of a method that learns from class labels.
        split: train, dev or test, to retrieve in and to draw examples from.
        device: to encode on; None for the CPU.
        say: told what is done next.

    Raises:
        RunFolderError: there is no run, it is not finished, or a file of it is damaged.
        InputError: the run is of a method that knows no labels, or the data do not fit the model any more.
    """
    folder = RunFolder(run)
    table, config = read_label_table(folder), folder.read_config()
    say("data")
    data, missing = find_data(config, split)
    images, trained = None, None
    if data is not None:
        images, pairs = data
        model = open_run(run).model.to(device or torch.device("cpu"))
        trained = look_at(model, pairs, seed=config["training"]["seed"], say=say)
    reference = table.given if table.truth is None else table.truth
    return Inspection(
        name=run.resolve().name,
        method=config["method"]["name"],
        split=split,
        table=table,
        record=label_record(table.given, table.distribution, table.truth),
        against="given" if table.truth is None else "true",
        counts=confusion(table.corrected, reference, len(table.classes)),
        heat=mean_distribution(table.distribution, reference),
        images=images,
        trained=trained,
        missing=missing,
    )
