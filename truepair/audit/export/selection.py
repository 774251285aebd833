"""Which pairs an audit keeps, and the weight of each."""

from __future__ import annotations

import numpy as np

from truepair.audit.result import AuditResult
from truepair.data.selection import Selection


def selection_of(result: AuditResult) -> Selection:
    """Kept is what was scored, is not flagged, and is at least as probable as the option `keep` asks; the weight of a
    pair is its p_match, and 0 where it is flagged or was not scored.
    """
    count, flagged = len(result.collection), result.verdict.flagged
    selection = Selection(np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.float32))
    selection.kept[result.rows] = ~flagged & (result.verdict.p_match >= float(result.options.get("keep", 0.0)))
    selection.flagged[result.rows] = flagged
    selection.weights[result.rows] = np.where(flagged, 0, result.verdict.p_match)
    return selection
