"""How pages show what a method keeps of every pair: the method says it, the pages ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PairField:
    """How the field calls a per-pair value.

    Attributes:
        name: in words.
        symbol: as the paper prints it, in the notation of TeX.
        unit: its natural range is [0, 1], and figures show that rather than the range of the values.
        shown: always, never (a switch, no distribution), or only where the method believes it as it is.
        below_threshold: pairs whose value is below the method's option `threshold` are determined, the others hard.
        mixture: names in the log of each epoch, FIRST_low and FIRST_high for the range of the values and SECOND_… for
            the two components fitted to the values scaled to [0, 1]; None where there is no such fit.
    """

    name: str
    symbol: str = ""
    unit: bool = True
    shown: Literal["always", "never", "believed"] = "always"
    below_threshold: bool = False
    mixture: tuple[str, str] | None = None

    @property
    def axis(self) -> str:
        return f"{self.name} ${self.symbol}$" if self.symbol else self.name


PairFields = dict[str, PairField]
