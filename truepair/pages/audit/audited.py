"""`truepair.audit` as people call it: the audit, with its page."""

from __future__ import annotations

from typing import Any

from truepair.audit.audit import audit
from truepair.audit.result import AuditResult


def audit_with_page(*arguments: Any, **options: Any) -> AuditResult:
    """`truepair.audit.audit.audit` of the same arguments; where it writes to a folder, report.html is there, too."""
    from truepair.pages.audit.page import render_page

    return audit(*arguments, page=render_page, **options)
