"""An audit for people and programs: tables, summary, page, the reasons in words, and what to be careful about."""

from truepair.audit.report.text import summary_text
from truepair.audit.report.warnings import warnings_of
from truepair.audit.report.wording import reasons
from truepair.audit.report.write import write_audit

__all__ = ["reasons", "summary_text", "warnings_of", "write_audit"]
