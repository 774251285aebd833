"""Which rows of a table are not run, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truepair.reproduce.published.printed import PrintedRow


@dataclass(frozen=True)
class LeftOut:
    """What is not run of a table.

    Attributes:
        rows: each with its reason.
        remarks: where the data and weights that are missing come from, and which of those given no row is of.
    """

    rows: Sequence[tuple[PrintedRow, str]]
    remarks: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """One line a reason, with the rows that have it, then the remarks."""
        reasons = dict.fromkeys(why for _, why in self.rows)
        return [*(self._line(why) for why in reasons), *self.remarks]

    def _line(self, why: str) -> str:
        rows = [row for row, reason in self.rows if reason == why]
        methods, data, rates = (
            ", ".join(dict.fromkeys(getattr(row, part) for row in rows)) for part in ("method", "data", "rate")
        )
        count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
        return f"{count} left out, {why} ({methods}; {data}; {rates})"
