"""An audit for people and programs: tables, summary, page, the reasons in words, and what to be careful about."""

from truepair.audit.reasons import reasons
from truepair.audit.tables.text import summary_text
from truepair.audit.tables.write import write_audit
from truepair.audit.warnings import warnings_of

__all__ = ["reasons", "summary_text", "warnings_of", "write_audit"]
