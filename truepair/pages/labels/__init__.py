"""Corrected class labels, for people: which ones a run doubts, what it proposes instead, and what its model finds."""
