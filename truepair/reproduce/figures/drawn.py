"""A figure with the numbers it shows, and its three files."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truepair.files import write_bytes_atomically, write_json_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A figure and its numbers, which are all that is drawn."""

    figure: Figure
    numbers: Numbers

    def told(self, about: Numbers) -> Numbers:
        """What NAME.json holds: the numbers, and what they are of, as JSON gives them back."""
        told: Numbers = json.loads(json.dumps({**about, "numbers": self.numbers}, allow_nan=False))
        return told


def write_figure(drawn: Drawn, folder: Path, name: str, about: Numbers) -> list[Path]:
    """Write NAME.svg, NAME.png and NAME.json; the same bytes for the same numbers.

    Args:
        about: what the numbers are of: paper, tables, command.
    """
    import matplotlib

    from truepair.pages.kit.canvas import png_of, styled

    folder.mkdir(parents=True, exist_ok=True)
    svg = io.StringIO()
    with styled(), matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        drawn.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    paths = [folder / f"{name}.{kind}" for kind in ("svg", "png", "json")]
    write_bytes_atomically(paths[0], svg.getvalue().encode())
    write_bytes_atomically(paths[1], png_of(drawn.figure))
    write_json_atomically(paths[2], drawn.told(about))
    return paths
