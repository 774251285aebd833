"""The names of the drawings: `scenes`, `scenes:500`, `scenes:500:7`. Everything else is a path."""

from __future__ import annotations

import re

NAME = re.compile(r"scenes(?::(\d+))?(?::(\d+))?")


def is_scenes(source: object) -> bool:
    """Whether the source is the drawings; a folder `scenes_photos` is not."""
    return NAME.fullmatch(str(source)) is not None
