"""The options of `truepair features`; importable without numpy, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import Options, option


@dataclass(frozen=True)
class FeatureOptions(Options):
    """What is written of the features of an encoder."""

    layout: Literal["precomp", "arrays"] = option(
        "precomp", "the field's precomp layout, or an array and a list of ids a split"
    )
    grid: int | None = option(
        None, "pool regions to N x N; 1 gives one vector an image; default: the encoder's own", least=1
    )
    project: int | None = option(
        None, "project regions to N numbers, by principal components of the training pictures; default: all", least=1
    )
    seed: int = option(0, "seed of the draw of pictures that these are computed of", least=0)
