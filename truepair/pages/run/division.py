"""`read_report`: from a run folder, finished or not, to what there is to say about its division."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from truepair.correspondence.mixture_proportion import Estimate
from truepair.data.open import is_drawn, load
from truepair.data.pairs import Array, BoolArray, Images
from truepair.errors import RunFolderError
from truepair.methods import learns_from_labels, shown_fields
from truepair.methods.base import LINEAR_MODELS
from truepair.pages.kit.pictures import pixels_of
from truepair.pages.run.epochs import PARTS, Epoch, epoch_of, read_records
from truepair.pages.run.indicators import Indicator, indicators_of
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder

PER_END = 3


@dataclass(frozen=True)
class Example:
    """One pair: the part it is in, which end of it (`lowest` or `highest` value), and what is known of it.

    Attributes:
        value: what the part was ordered by.
        mismatched: the truth, or None.
        picture: (H, W, 3) uint8 where the data has pixels, else None.
    """

    part: str
    end: str
    pair_id: str
    image: str
    caption: str
    value: float
    belief: float
    mismatched: bool | None
    picture: Array | None = None


def examples_of(columns: dict[str, Array], images: Images | None) -> list[Example]:
    """Of each part the pairs with the lowest and with the highest value, outermost first; no pair twice.

    The value is the uncertainty where the method keeps one, else the belief. Ties go by place.
    """
    values = columns[ordering(columns)]
    found = []
    for part in PARTS:
        inside = np.flatnonzero(columns["division"] == part)
        order = inside[np.argsort(values[inside], kind="stable")]
        ends = {"lowest": order[:PER_END], "highest": order[PER_END:][-PER_END:][::-1]}
        for end, rows in ends.items():
            for row in rows.tolist():
                image = str(columns["image"][row])
                found.append(
                    Example(
                        part,
                        end,
                        pair_id=str(columns["pair_id"][row]),
                        image=image,
                        caption=str(columns["caption"][row]),
                        value=float(values[row]),
                        belief=float(columns["belief"][row]),
                        mismatched=bool(columns["mismatched"][row]) if "mismatched" in columns else None,
                        picture=pixels_of(images, int(columns["image_index"][row]), image),
                    )
                )
    return found


def ordering(columns: dict[str, Array]) -> str:
    return "memory_uncertainty" if "memory_uncertainty" in columns else "belief"


def training_images(config: dict[str, Any]) -> Images | None:
    """The training images of a run if their source has pixels: the drawings have, a folder of features has not."""
    source = (config.get("data") or {}).get("source")
    return load(source, "train").images if source is not None and is_drawn(source) else None


NEEDED = ("pair_id", "image_index", "image", "caption", "flagged")


@dataclass(frozen=True)
class DivisionReport:
    """The division of one run.

    Attributes:
        path: the run folder.
        name: how tables and figures call the run.
        method: its name.
        finished: the run is; else the epochs are those so far.
        epochs: one row each.
        indicators: of the last epoch; none before `pairs.parquet` is written.
        mismatched: (N,) the truth about the pairs of the indicators, or None.
        ordered_by: what the examples of each part are ordered by: `uncertainty` or `belief`.
        examples: of each part the lowest and the highest.
        estimate: of the share of mismatched pairs, where the run is finished and its method makes one.
        estimated_by: whose estimate that is.
    """

    path: Path
    name: str
    method: str
    finished: bool
    epochs: tuple[Epoch, ...]
    indicators: tuple[Indicator, ...] = ()
    mismatched: BoolArray | None = None
    ordered_by: str = "belief"
    examples: tuple[Example, ...] = ()
    estimate: Estimate | None = None
    estimated_by: str = LINEAR_MODELS

    @property
    def pairs(self) -> int | None:
        if self.indicators:
            return len(self.indicators[0].values)
        return self.epochs[-1].pairs if self.epochs and self.epochs[-1].divided else None

    @property
    def mismatch_rate(self) -> float | None:
        """Share of mismatched pairs in [0, 1]; None where the truth is unknown."""
        if self.mismatched is not None:
            return float(self.mismatched.mean())
        return self.epochs[-1].mismatch_rate if self.epochs else None

    @property
    def about_labels(self) -> bool:
        """Whether the run corrects class labels: then a pair matches where its given label is right."""
        return learns_from_labels(self.method)

    @property
    def belief_axis(self) -> str:
        """What the method's belief is called."""
        return next((indicator.term.axis for indicator in self.indicators if indicator.is_belief), "belief")


def read_report(run: Path | str, *, name: str | None = None, pictures: bool = True) -> DivisionReport:
    """The division report of a run folder.

    Args:
        run: the folder; the run may still be training.
        name: how to call it; None for the folder's name.
        pictures: look for the pixels of the examples, which draws the scenes again.

    Raises:
        RunFolderError: no run there, no epoch of it finished, or one of its files is damaged.
    """
    folder = RunFolder(Path(run))
    config = folder.read_config()
    if config.get("imported"):
        raise RunFolderError(f"{run} holds an imported model; it was not trained here and divided no pairs")
    records = read_records(folder.metrics)
    if not records:
        raise RunFolderError(
            f"{run}: no epoch is finished yet, so there is nothing to report; ask again after the first"
        )
    try:
        method, options = str(config["method"]["name"]), dict(config["method"]["options"])
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{folder.config} names no method ({error}); restore it from a copy") from error
    report = DivisionReport(
        path=folder.path,
        name=name or folder.path.resolve().name,
        method=method,
        finished=folder.finished,
        epochs=tuple(map(epoch_of, records)),
        **estimate_of(folder),
    )
    if not folder.pairs.exists():
        return report
    columns = read_columns(folder.pairs)
    if report.about_labels and "wrong_label" in columns:
        columns["mismatched"] = columns["wrong_label"]  # what such a run says of a pair
    return replace(
        report,
        indicators=tuple(indicators_of(columns, shown_fields(method), options, records[-1])),
        mismatched=columns.get("mismatched"),
        ordered_by=ordering(columns).removeprefix("memory_"),
        examples=tuple(examples_of(columns, training_images(config) if pictures else None)),
    )


def estimate_of(folder: RunFolder) -> dict[str, Any]:
    """Estimate and whose it is, of a run that has one.

    Raises:
        RunFolderError: the figures of a finished run are damaged.
    """
    result = folder.read_result() if folder.finished else {}
    found = result.get("mismatch_share")
    if found is None:
        return {}
    try:
        estimate = Estimate(**{name: float(value) for name, value in found.items()})
        return {"estimate": estimate, "estimated_by": str(result.get("mismatch_share_by", LINEAR_MODELS))}
    except (AttributeError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{folder.result}: mismatch_share is no estimate ({error}); restore it from a copy"
        ) from error


def read_columns(path: Path) -> dict[str, Any]:
    """The columns of `pairs.parquet` as arrays, and `belief`; runs of a first version divide by `flagged`."""
    table = read_pair_table(path, NEEDED)
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    columns["belief"] = columns["label_belief" if "label_belief" in columns else "p_match"]
    for name in ("belief", *(name for name in columns if name.startswith("memory_"))):
        if not np.isfinite(columns[name]).all():
            raise RunFolderError(f"{path}: column {name} holds a value that is not finite; train the run again")
    columns.setdefault("division", np.where(columns["flagged"], "noisy", "clean"))
    return columns
