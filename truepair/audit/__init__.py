"""The audit: which pairs are mismatched, how sure that is, what would fit better, and how noisy the data set is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truepair.audit.audit import audit
    from truepair.audit.options import AuditOptions, CrossFitting
    from truepair.audit.result import AuditResult, Rematch, Verdict

_HOME = {
    "audit": "truepair.audit.audit",
    "AuditOptions": "truepair.audit.options",
    "CrossFitting": "truepair.audit.options",
    "AuditResult": "truepair.audit.result",
    "Rematch": "truepair.audit.result",
    "Verdict": "truepair.audit.result",
}
__all__ = ["AuditOptions", "AuditResult", "CrossFitting", "Rematch", "Verdict", "audit"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'truepair.audit' has no attribute {name!r}")
