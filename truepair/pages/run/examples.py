"""The pairs at the ends of each part of a division, to look at (UGNCL shows such by their uncertainty)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.data.open import is_drawn, load
from truepair.data.pairs import Array, Images
from truepair.pages.kit.pictures import pixels_of
from truepair.pages.run.epochs import PARTS

PER_END = 3


@dataclass(frozen=True)
class Example:
    """One pair: the part it is in, which end of it (`lowest` or `highest` value), and what is known of it.

    Attributes:
        value: what the part was ordered by.
        mismatched: the truth, or None.
        picture: (H, W, 3) uint8 where the data has pixels, else None.
    """

    part: str
    end: str
    pair_id: str
    image: str
    caption: str
    value: float
    belief: float
    mismatched: bool | None
    picture: Array | None = None


def examples_of(columns: dict[str, Array], images: Images | None) -> list[Example]:
    """Of each part the pairs with the lowest and with the highest value, outermost first; no pair twice.

    The value is the uncertainty where the method keeps one, else the belief. Ties go by place.
    """
    values = columns[ordering(columns)]
    found = []
    for part in PARTS:
        inside = np.flatnonzero(columns["division"] == part)
        order = inside[np.argsort(values[inside], kind="stable")]
        ends = {"lowest": order[:PER_END], "highest": order[PER_END:][-PER_END:][::-1]}
        for end, rows in ends.items():
            for row in rows.tolist():
                image = str(columns["image"][row])
                found.append(
                    Example(
                        part,
                        end,
                        pair_id=str(columns["pair_id"][row]),
                        image=image,
                        caption=str(columns["caption"][row]),
                        value=float(values[row]),
                        belief=float(columns["belief"][row]),
                        mismatched=bool(columns["mismatched"][row]) if "mismatched" in columns else None,
                        picture=pixels_of(images, int(columns["image_index"][row]), image),
                    )
                )
    return found


def ordering(columns: dict[str, Array]) -> str:
    return "memory_uncertainty" if "memory_uncertainty" in columns else "belief"


def training_images(config: dict[str, Any]) -> Images | None:
    """The training images of a run if their source has pixels: the drawings have, a folder of features has not."""
    source = (config.get("data") or {}).get("source")
    return load(source, "train").images if source is not None and is_drawn(source) else None
