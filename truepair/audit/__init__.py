"""The audit: which pairs are mismatched, how sure that is, what would fit better, and how noisy the data set is."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truepair.audit.audit import audit
    from truepair.audit.options import AuditOptions, CrossFitting
    from truepair.audit.result import AuditResult, Rematch, Verdict
    from truepair.data.open_collection import open_collection

_HOME = {
    "audit": "truepair.audit.audit",
    "open_collection": "truepair.data.open_collection",
    "AuditOptions": "truepair.audit.options",
    "CrossFitting": "truepair.audit.options",
    "AuditResult": "truepair.audit.result",
    "Rematch": "truepair.audit.result",
    "Verdict": "truepair.audit.result",
}
__all__ = ["AuditOptions", "AuditResult", "CrossFitting", "Rematch", "Verdict", "audit", "open_collection"]


class _Room(ModuleType):
    """Python binds `truepair.audit` to this room as soon as a part of it is imported; called, it is the function."""

    def __call__(self, *arguments: Any, **options: Any) -> AuditResult:
        from truepair.audit.audit import audit

        return audit(*arguments, **options)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'truepair.audit' has no attribute {name!r}")
