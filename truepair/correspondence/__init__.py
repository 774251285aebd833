"""What is believed about each pair: matching probability, and the memory that keeps it."""

from truepair.correspondence.memory import CorrespondenceMemory
from truepair.correspondence.probability import matching_probability

__all__ = ["CorrespondenceMemory", "matching_probability"]
