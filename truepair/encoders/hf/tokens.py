"""Captions to token ids, cut to what the text tower reads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

FILLED = frozenset({"siglip", "siglip2"})
"""Kinds of models that were trained on captions filled up to the full length, without a mask of what is real."""

_AT_ONCE = 4096


class CaptionsCut(UserWarning):
    """Captions are longer than the model reads."""


class Tokens:
    """The tokenizer of a model.

    Args:
        tokenizer: that of transformers.
        longest: most tokens the text tower reads, its own marks of beginning and end included.
        kind: the type of the model.
        name: what messages call the model.
    """

    def __init__(self, tokenizer: Any, longest: int, kind: str, name: str) -> None:
        self.tokenizer, self.longest, self.filled, self.name = tokenizer, longest, kind in FILLED, name

    def encode(self, captions: Sequence[str]) -> list[list[int]]:
        """Token ids of every caption, at most `longest`; warns (`CaptionsCut`) of those that were cut."""
        found: list[list[int]] = []
        cut = 0
        for start in range(0, len(captions), _AT_ONCE):
            some = list(captions[start : start + _AT_ONCE])
            ids = self.tokenizer(some, truncation=False, add_special_tokens=True, verbose=False)["input_ids"]
            long = [place for place, row in enumerate(ids) if len(row) > self.longest]
            cut += len(long)
            if long:
                again = self.tokenizer([some[place] for place in long], truncation=True, max_length=self.longest)
                for place, row in zip(long, again["input_ids"], strict=True):
                    ids[place] = row
            found += ids
        if cut:
            warnings.warn(
                f"{cut:,} of {len(captions):,} captions are longer than the {self.longest} tokens that {self.name} "
                "reads; what comes after was cut off",
                CaptionsCut,
                stacklevel=2,
            )
        return found

    def padded(self, rows: Sequence[list[int]]) -> dict[str, Any]:
        """What the text tower takes of some captions: tensors `input_ids` (B, W) and mostly `attention_mask`."""
        length = {"padding": "max_length", "max_length": self.longest} if self.filled else {"padding": "longest"}
        padded = self.tokenizer.pad({"input_ids": list(rows)}, return_tensors="pt", **length)
        kept = ("input_ids",) if self.filled else ("input_ids", "attention_mask")
        return {name: padded[name] for name in kept if name in padded}
