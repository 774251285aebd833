"""JSON as text that UTF-8 can hold."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    """The value in JSON, letters as they are; escaped where a text holds half a letter (a lone surrogate, such as a
    caption cut inside an emoji leaves), which UTF-8 cannot write.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text
