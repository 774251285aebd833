"""The course of a run: from `metrics.jsonl` to one row an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truepair.errors import InputError, RunFolderError
from truepair.files import options_from
from truepair.training.run_folder import read_lines

PARTS = ("clean", "hard", "noisy")


@dataclass(frozen=True)
class Epoch:
    """The division after one epoch; what is unknown or undefined is None.

    Attributes:
        epoch: from 1, over all stages.
        stage: counts the fresh networks from 0.
        clean, hard, noisy: pairs in each part.
        clean_matched, hard_matched, noisy_matched: share of truly matched pairs in each part, in [0, 1].
        belief_matched_mean, belief_mismatched_mean: mean belief of the truly matched and mismatched pairs.
        division_accuracy: share of pairs on the right side of the division.
        auroc: the chance that a mismatched pair is believed less than a matched one.
    """

    epoch: int
    stage: int
    clean: int | None = None
    hard: int | None = None
    noisy: int | None = None
    clean_matched: float | None = None
    hard_matched: float | None = None
    noisy_matched: float | None = None
    belief_matched_mean: float | None = None
    belief_mismatched_mean: float | None = None
    division_accuracy: float | None = None
    auroc: float | None = None

    @property
    def divided(self) -> bool:
        """Whether the sizes of the parts are known."""
        return self.clean is not None and self.hard is not None and self.noisy is not None

    @property
    def pairs(self) -> int:
        return (self.clean or 0) + (self.hard or 0) + (self.noisy or 0)

    def matched_in(self, part: str) -> float | None:
        """How many pairs of a part truly match; None where the truth is unknown."""
        if not self.divided or not self.truth_known:
            return None
        share: float | None = getattr(self, f"{part}_matched")
        size: int = getattr(self, part)
        return 0.0 if share is None else size * share

    @property
    def truth_known(self) -> bool:
        return any(getattr(self, f"{part}_matched") is not None for part in PARTS)

    @property
    def mismatch_rate(self) -> float | None:
        """Share of mismatched pairs in all parts together, in [0, 1]."""
        matched = [self.matched_in(part) for part in PARTS]
        known = [count for count in matched if count is not None]
        return 1 - sum(known) / self.pairs if len(known) == len(PARTS) and self.pairs else None


def epoch_of(record: dict[str, Any]) -> Epoch:
    """The row of one line of `metrics.jsonl`, also of a run that logged no division yet."""
    figures = (record.get("division") or {}) | (record.get("detection") or {})
    known = {name: figures[name] for name in Epoch.__dataclass_fields__ if name in figures}
    return options_from(Epoch, {"epoch": record["epoch"], "stage": record["stage"], **known}, "division")


def read_records(path: Path) -> list[dict[str, Any]]:
    """All whole lines of `metrics.jsonl`; of a run that is being trained the last one may be half written."""
    records = read_lines(path)
    for number, record in enumerate(records, start=1):
        try:
            epoch_of(record)
        except (InputError, KeyError, TypeError, AttributeError) as error:
            raise RunFolderError(
                f"{path}, line {number}: not the record of an epoch ({error!r}); restore the file from a copy"
            ) from error
    return records
