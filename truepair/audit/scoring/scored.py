"""The scores of a collection of embeddings, read from the folder they were written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import UNUSABLE
from truepair.audit.scoring.indicators import BANK_INDICATORS
from truepair.audit.scoring.scoring_folder import ScoringFolder
from truepair.data.collection import EmbeddingCollection, Problem
from truepair.data.pairs import Array, IntArray

_DETAILS = {
    "nan-row": "a number of the image's or the text's vector is NaN or infinite; embed this pair again",
    "zero-row": "the image's or the text's vector is all zeros; embed this pair again",
}


@dataclass(frozen=True)
class Scored:
    """A scored collection.

    Attributes:
        folder: where it stands.
        rows: (M,) int64, the rows of the collection that could be scored, ascending.
        similarity: (M,) float32, cosine of image and text.
        log_odds: (M,) float32, log odds of the matching probability.
        indicators: name (of `BANK_INDICATORS`) → (M,) float32 in [0, 1].
        unusable: (U,) int64, the rows that could not be scored, ascending.
        reasons: (U,) why, of `UNUSABLE`.
    """

    folder: Path
    rows: IntArray
    similarity: Array
    log_odds: Array
    indicators: dict[str, Array]
    unusable: IntArray
    reasons: list[str]

    def bank(self) -> Bank:
        """The bank all were compared with."""
        return ScoringFolder(self.folder).bank()

    def problems(self, collection: EmbeddingCollection) -> list[Problem]:
        """The unusable rows as entries of the list of problems."""
        found = []
        for row, reason in zip(self.unusable.tolist(), self.reasons, strict=True):
            file, place = collection.place(row)
            found.append(Problem(collection.ids(row, row + 1)[0], file, place, reason, _DETAILS[reason]))
        return found


def open_scored(folder: Path | str) -> Scored:
    """The scores of a finished folder; 40 bytes of memory a pair.

    Raises:
        InputError: the folder is none, a chunk is missing or damaged; the message says what to do.
    """
    place = ScoringFolder(Path(folder))
    spans, places = place.spans(), {"rows": 0, "unusable": 0}
    kinds = dict.fromkeys(("rows", "similarity", "log_odds", *BANK_INDICATORS), "rows")
    kinds |= dict.fromkeys(("unusable", "reason"), "unusable")
    whole: dict[str, Array] = {}  # room for all, where each chunk is put: never two copies of the whole
    for span in spans:
        columns = place.columns(place.chunk(span))
        for name, kind in kinds.items():
            if name not in whole:
                whole[name] = np.empty(spans[-1].stop, dtype=columns[name].dtype)
            whole[name][places[kind] : places[kind] + len(columns[name])] = columns[name]
        for kind in places:
            places[kind] += len(columns[kind])
    whole = {name: whole[name][: places[kind]] for name, kind in kinds.items()}
    return Scored(
        folder=place.path,
        rows=whole["rows"],
        similarity=whole["similarity"],
        log_odds=whole["log_odds"],
        indicators={name: whole[name] for name in BANK_INDICATORS},
        unusable=whole["unusable"],
        reasons=[UNUSABLE[reason] for reason in whole["reason"].tolist()],
    )
