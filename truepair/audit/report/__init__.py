"""An audit for people and programs: tables, summary, page, and the reasons in words."""

from truepair.audit.report.text import summary_text
from truepair.audit.report.wording import reasons
from truepair.audit.report.write import write_audit

__all__ = ["reasons", "summary_text", "write_audit"]
