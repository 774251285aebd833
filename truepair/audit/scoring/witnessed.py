"""What a way of scoring hands to the verdict and to the rematch, whichever way it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.evidence import HeldOut, Witness
from truepair.audit.verdict.local_ranks import LocalShare
from truepair.data.collection import Problem
from truepair.data.pairs import IntArray

if TYPE_CHECKING:
    from truepair.audit.scoring.cell_space import CellSpace


class Judge(Protocol):
    """A space of embeddings in which some pairs may be rematched. Pairs are told by their position among the scored."""

    @property
    def bank(self) -> Bank: ...

    def may_judge(self, positions: IntArray) -> IntArray:
        """Those of the positions that this space may be asked about."""

    def vectors(self, positions: IntArray) -> tuple[Tensor, Tensor]:
        """Unit vectors of the images and texts of some pairs, ascending, (n, D) each."""

    def blocks(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """(first position, images, texts) of all scored pairs, block by block."""

    def bank_rows(self, positions: IntArray) -> IntArray:
        """The rows by which the bank knows the pairs."""


@dataclass(frozen=True)
class Witnessed:
    """Attributes:
    rows: (M,) int64, the rows of the collection that could be scored.
    given: columns and evidence of these pairs.
    yardstick: kind → the same of known mismatches; empty where there are none of the same evidence.
    held_out: evidence of which more mismatches are known, where there is such.
    local: how many are mismatched by local ranks, where pairs have vectors and there are enough.
    judges: the spaces in which suspicious pairs are rematched.
    bank: number of pairs that each was compared with.
    problems: rows that could not be scored.
    cells: what rematches suspicious pairs where there are no judges.
    details: what else the summary should say of how pairs were scored; JSON values.
    """

    rows: IntArray
    given: Witness
    yardstick: dict[str, Witness]
    judges: Sequence[Judge]
    bank: int
    problems: list[Problem] = field(default_factory=list)
    cells: CellSpace | None = None
    held_out: HeldOut | None = None
    local: LocalShare | None = None
    details: dict[str, Any] = field(default_factory=dict)
