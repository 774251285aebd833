from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from truepair.audit.result import AuditResult, Rematch, Verdict
from truepair.data.collection import Collection


def make_result(
    collection: Collection, flagged: Sequence[int], *, rows: Sequence[int] | None = None, **options: Any
) -> AuditResult:
    """An audit of the given rows (or all) that flags some rows of the collection; row r has p_match (r mod 97) / 100
    + 0.01."""
    scored = np.arange(len(collection)) if rows is None else np.array(rows)
    p_match = (scored % 97 / 100 + 0.01).astype(np.float32)
    verdict = Verdict(p_match, np.isin(scored, flagged), 0.1, 0.0, 0.2, two_groups=True)
    none = np.empty(0, dtype=np.int64)
    return AuditResult(
        collection=collection,
        scored_by="embeddings",
        rows=scored,
        similarity=p_match,
        indicators={},
        verdict=verdict,
        reasons=[""] * len(scored),
        rematch=Rematch(none, none, p_match[:0], none, p_match[:0], none),
        duplicates=[],
        faults=[],
        problems=[],
        options=options,
    )


@pytest.fixture(scope="session")
def audited() -> Callable[..., AuditResult]:
    return make_result
