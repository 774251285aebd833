"""The ablation of our own method: options that take one part away.

What is new here are two parts, teacher and average; so each off alone is the other added alone to CRCL.
"""

from __future__ import annotations

from typing import Any

NOTHING: dict[str, Any] = {"distillation": 0.0, "average_epochs": 0.0}
"""Without what is new here: the training of CRCL, number by number, with one piece before the last."""

PARTS: dict[str, dict[str, Any]] = {
    "no-teacher": {"distillation": 0.0},
    "no-average": {"average_epochs": 0.0},
    "disbelieved-only": {"taught": "disbelieved"},
    "own-kept": {"own_cell": "kept"},
    "no-complementary": {"scale": 0.0},
    "given-labels": {"labels": "given"},
}
"""Each part off, alone."""
