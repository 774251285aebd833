"""The pairs an audit keeps, and how much to trust each: as lists, and in the format of the input."""

from __future__ import annotations

from truepair.audit.export.folder import FORMATS, export

__all__ = ["FORMATS", "export"]
