"""Where what can be computed again is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(given: Path | None = None) -> Path:
    """The folder that is given, else `$TRUEPAIR_CACHE`, else `~/.cache/truepair`; it may be deleted at any time."""
    named = given or os.environ.get("TRUEPAIR_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "truepair"
