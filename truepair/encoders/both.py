"""The windows and EfficientNet-Lite0 side by side: the default for pictures where the extra `pictures` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from truepair.encoders.efficientnet import GRID, EfficientNet
from truepair.encoders.encoder import Encoder, Floats, Picture
from truepair.encoders.windows import GRID as WINDOWS
from truepair.encoders.windows import Windows


class Both(Encoder):
    """(16, 376) of a picture: what the network says of each of 4 x 4 regions, then what the windows there say."""

    name = "both"
    regions, width = GRID**2, EfficientNet.width + Windows.width
    batch, batch_bytes = EfficientNet.batch, EfficientNet.batch_bytes

    def __init__(self) -> None:
        self._network, self._windows = EfficientNet(), Windows()

    def identity(self) -> str:
        return f"both-{self._windows.identity()}-{self._network.identity()}"

    def prepare(self, picture: Picture) -> tuple[Any, Floats]:
        windows = self._windows.prepare(picture)
        return self._network.prepare(picture), windows

    def encode(self, prepared: Sequence[tuple[Any, Floats]]) -> Floats:
        network = self._network.encode([pixels for pixels, _ in prepared])
        windows = self._windows.encode([windows for _, windows in prepared])
        return np.concatenate((network, _pooled(windows)), axis=2)


def _pooled(windows: Floats) -> Floats:
    """(B, 36, 56) of 6 x 6 windows, averaged to (B, 16, 56) of 4 x 4."""
    maps = torch.from_numpy(windows).transpose(1, 2).reshape(len(windows), -1, WINDOWS, WINDOWS)
    return np.asarray(F.adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2).numpy(), dtype=np.float32)
