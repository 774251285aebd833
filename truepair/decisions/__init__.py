"""What people decide of pairs: kept safely, drawn so that it counts, and what follows from it."""

from truepair.decisions.decision import VERDICTS, Decision
from truepair.decisions.store import DecisionStore

__all__ = ["VERDICTS", "Decision", "DecisionStore"]
