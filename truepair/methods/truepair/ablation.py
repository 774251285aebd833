"""The ablation of our own method: options that take one part away."""

from __future__ import annotations

from typing import Any

NOTHING: dict[str, Any] = {
    "distillation": 0.0,
    "average_epochs": 0.0,
    "credit": "label",
    "label_memory": "momentum",
    "first_labels": "given",
}
"""Without what is new here: the training of CRCL, number by number, with as many pieces before the last."""

PARTS: dict[str, dict[str, Any]] = {
    "no-teacher": {"distillation": 0.0},
    "no-average": {"average_epochs": 0.0},
    "disbelieved-only": {"taught": "disbelieved"},
    "unaltered": {"teacher_input": "unaltered"},
    "own-kept": {"own_cell": "kept"},
    "own-unused": {"own_cell": "unused"},
    "no-complementary": {"scale": 0.0},
    "any-believed": {"least_believed": "any"},
    "label-credit": {"credit": "label"},
    "moving-labels": {"label_memory": "momentum"},
    "given-labels": {"labels": "given"},
    "given-first": {"first_labels": "given"},
}
"""Each part off, or another in its place, alone."""
