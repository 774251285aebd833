"""The grid descriptor against a naive loop, and on pictures whose answer is known."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from truepair.encoders.descriptor import (
    DESCRIPTOR_SIZE,
    GRADIENTS,
    HUE,
    LAB_DEVIATION,
    LAB_MEAN,
    LIGHTNESS,
    ORIENTATIONS,
    POSITION,
    grid_descriptor,
)
from truepair.errors import InputError

Pixels = NDArray[np.uint8]


def plain(red: int, green: int, blue: int, side: int = 28) -> Pixels:
    return np.full((side, side, 3), (red, green, blue), dtype=np.uint8)


def noise(height: int, width: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def ramp(degrees: float, side: int = 56) -> Pixels:
    """A picture whose lightness rises in this direction (0 = to the right, 90 = downwards)."""
    y, x = np.mgrid[:side, :side] - side / 2
    level = 128 + 6.5 * (math.cos(math.radians(degrees)) * x + math.sin(math.radians(degrees)) * y)
    return np.repeat(np.clip(level, 0, 255).round().astype(np.uint8)[..., None], 3, axis=2)


def naive_gradients(pixels: Pixels, grid: int) -> NDArray[np.float64]:
    """GRADIENTS of every window by the description in the module, one pixel at a time."""
    height, width, _ = pixels.shape
    rows, columns = ([round(k * side / (grid + 1)) for k in range(grid + 2)] for side in (height, width))
    cells = np.zeros((grid + 1, grid + 1, 9))
    for i in range(grid + 1):
        for j in range(grid + 1):
            for y in range(rows[i], rows[i + 1]):
                for x in range(columns[j], columns[j + 1]):
                    best = (-1.0, 0.0, 0.0)
                    for channel in range(3):
                        plane = pixels[:, :, channel].astype(float)
                        dx = plane[y, x + 1] - plane[y, x - 1] if 0 < x < width - 1 else 0.0
                        dy = plane[y + 1, x] - plane[y - 1, x] if 0 < y < height - 1 else 0.0
                        if dx * dx + dy * dy > best[0]:
                            best = (dx * dx + dy * dy, dx, dy)
                    position = (math.degrees(math.atan2(best[2], best[1])) % 180) / 20
                    low = math.floor(position)
                    strength = math.sqrt(best[0]) / 2
                    cells[i, j, low % 9] += strength * (1 - (position - low))
                    cells[i, j, (low + 1) % 9] += strength * (position - low)
            cells[i, j] /= (rows[i + 1] - rows[i]) * (columns[j + 1] - columns[j])
    windows = []
    for i in range(grid):
        for j in range(grid):
            window = np.concatenate([cells[i, j], cells[i, j + 1], cells[i + 1, j], cells[i + 1, j + 1]])
            windows.append(3 * np.sqrt(window / (window.sum() + 4)))
    return np.array(windows)


@pytest.mark.parametrize(("height", "width", "grid"), [(96, 96, 6), (80, 60, 6), (14, 33, 6), (17, 23, 3), (4, 4, 1)])
def test_shape_type_and_range(height: int, width: int, grid: int) -> None:
    features = grid_descriptor(noise(height, width), grid=grid)
    assert features.shape == (grid**2, DESCRIPTOR_SIZE)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert np.abs(features).max() < 6


@pytest.mark.parametrize(("height", "width", "grid"), [(14, 14, 3), (17, 23, 3), (9, 11, 1)])
def test_gradients_equal_a_naive_loop(height: int, width: int, grid: int) -> None:
    pixels = noise(height, width, seed=height)
    np.testing.assert_allclose(
        grid_descriptor(pixels, grid=grid)[:, GRADIENTS], naive_gradients(pixels, grid), atol=1e-5
    )


@pytest.mark.parametrize("degrees", [0, 20, 40, 80, 120, 160, 200])
def test_a_slope_lands_in_the_bin_of_its_direction(degrees: float) -> None:
    centre = grid_descriptor(ramp(degrees))[14, GRADIENTS].reshape(4, ORIENTATIONS)
    assert (centre.argmax(axis=1) == degrees % 180 // 20).all()
    assert (np.sort(centre)[:, -1] ** 2 > 0.75 * (centre**2).sum(axis=1)).all()


def test_a_slope_between_two_bins_is_shared() -> None:
    centre = grid_descriptor(ramp(90))[14, GRADIENTS].reshape(4, ORIENTATIONS)
    np.testing.assert_allclose(centre[:, 4], centre[:, 5], rtol=1e-3)
    assert (centre[:, 4] > 0.5).all()


def test_an_edge_is_in_the_cells_it_crosses() -> None:
    pixels = plain(0, 0, 0)
    pixels[:, 14:] = 255  # the edge runs through cell column 3 of 0..6
    energy = grid_descriptor(pixels)[:, GRADIENTS].reshape(6, 6, 4, ORIENTATIONS).sum(axis=3)
    assert (energy[:, [0, 1, 4, 5]] == 0).all()
    assert (energy[:, 2][:, [1, 3]] > 0).all()
    assert (energy[:, 2][:, [0, 2]] == 0).all()
    assert (energy[:, 3][:, [0, 2]] > 0).all()


def test_an_edge_between_colours_of_one_lightness_is_seen() -> None:
    pixels = plain(200, 60, 60)
    pixels[:, 14:] = (60, 118, 60)
    assert grid_descriptor(pixels)[2, GRADIENTS].max() > 1


@pytest.mark.parametrize("level", [0, 1, 127, 255])
def test_a_constant_grey_picture(level: int) -> None:
    features = grid_descriptor(plain(level, level, level))
    assert np.isfinite(features).all()
    assert (features[:, GRADIENTS] == 0).all()
    assert (features[:, HUE] == 0).all()
    np.testing.assert_allclose(features[:, LAB_DEVIATION], 0, atol=1e-2)
    np.testing.assert_allclose(features[:, LAB_MEAN][:, 1:], 0, atol=1e-3)


@pytest.mark.parametrize(
    ("colour", "lab"),
    [
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
    ],
)
def test_mean_lab_of_known_colours(colour: tuple[int, int, int], lab: tuple[float, float, float]) -> None:
    means = grid_descriptor(plain(*colour))[:, LAB_MEAN]
    np.testing.assert_allclose((means + np.array([1, 0, 0])) * (50, 40, 40), np.tile(lab, (36, 1)), atol=0.05)


def test_lab_deviation_of_a_half_black_half_white_window() -> None:
    pixels = plain(0, 0, 0, side=4)
    pixels[:, 2:] = 255
    deviation = grid_descriptor(pixels, grid=1)[0, LAB_DEVIATION]
    np.testing.assert_allclose(deviation * 15, (50, 0, 0), atol=0.02)


@pytest.mark.parametrize(
    ("colour", "shares"),
    [
        ((255, 0, 0), {0: 1.0}),
        ((128, 255, 0), {2: 1.0}),  # 90 degrees
        ((0, 255, 255), {4: 1.0}),
        ((255, 0, 255), {6: 1 / 3, 7: 2 / 3}),  # 300 degrees lies between 270 and 315
        ((255, 0, 64), {7: 1 / 3, 0: 2 / 3}),  # 345 degrees: the circle closes
        ((127, 0, 0), {0: 127 / 255}),  # half as saturated, half the weight
    ],
)
def test_hue_histogram_of_one_colour(colour: tuple[int, int, int], shares: dict[int, float]) -> None:
    expected = [2 * math.sqrt(shares.get(hue, 0)) for hue in range(8)]
    hues = grid_descriptor(plain(*colour))[:, HUE]
    np.testing.assert_allclose(hues, np.tile(expected, (36, 1)), atol=0.13)
    np.testing.assert_allclose((hues**2).sum(axis=1), sum(4 * share for share in shares.values()), rtol=1e-5)


def test_lightness_histogram_shares_add_up_and_follow_the_level() -> None:
    dark, light = (grid_descriptor(plain(level, level, level))[:, LIGHTNESS] for level in (0, 255))
    np.testing.assert_allclose(dark, np.tile([2, 0, 0, 0], (36, 1)), atol=1e-3)
    np.testing.assert_allclose(light, np.tile([0, 0, 0, 2], (36, 1)), atol=1e-2)
    anything = grid_descriptor(noise(40, 50))[:, LIGHTNESS]
    np.testing.assert_allclose((anything**2).sum(axis=1), 4, rtol=1e-5)


def test_position_runs_over_rows_then_columns() -> None:
    position = grid_descriptor(plain(9, 9, 9), grid=3)[:, POSITION]
    assert position.tolist() == [[row, column] for row in (-1, 0, 1) for column in (-1, 0, 1)]


def test_mirroring_the_picture_mirrors_the_features() -> None:
    pixels = noise(42, 28, seed=3)
    there = grid_descriptor(pixels).reshape(6, 6, DESCRIPTOR_SIZE)
    back = grid_descriptor(pixels[:, ::-1]).reshape(6, 6, DESCRIPTOR_SIZE)[:, ::-1]
    cells, mirrored = (f[:, :, GRADIENTS].reshape(6, 6, 2, 2, ORIENTATIONS) for f in (there, back))
    # Left and right cells change places; a gradient at angle t comes to 180 - t.
    turned = mirrored[:, :, :, ::-1, (-np.arange(ORIENTATIONS)) % ORIENTATIONS]
    np.testing.assert_allclose(turned, cells, atol=1e-5)
    np.testing.assert_allclose(back[:, :, 36:54], there[:, :, 36:54], atol=1e-5)


def test_moving_the_content_by_one_cell_moves_the_features_by_one_window() -> None:
    pixels = plain(240, 240, 230, side=56)
    pixels[20:34, 18:30] = noise(14, 12, seed=5)
    moved = np.roll(pixels, 8, axis=1)
    here, there = (grid_descriptor(p).reshape(6, 6, DESCRIPTOR_SIZE)[:, :, :54] for p in (pixels, moved))
    np.testing.assert_allclose(there[:, 1:], here[:, :-1], atol=1e-6)
    assert np.abs(there - here).max() > 0.5


def test_the_picture_is_left_as_it_is() -> None:
    pixels = noise(30, 40)
    before = pixels.copy()
    assert grid_descriptor(pixels, grid=4).shape == (16, DESCRIPTOR_SIZE)
    np.testing.assert_array_equal(pixels, before)


def test_memory_layout_does_not_matter() -> None:
    pixels = noise(28, 35)
    np.testing.assert_array_equal(grid_descriptor(np.asfortranarray(pixels)), grid_descriptor(pixels))


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((28, 28, 4), np.uint8), r"\(28, 28, 4\).*RGB"),
        (np.zeros((28, 28), np.uint8), r"\(28, 28\).*convert"),
        (np.zeros((28, 28, 3), np.float32), "float32.*uint8"),
        (np.zeros((28, 13, 3), np.uint8), "28 x 13 pixels.*14 x 14"),
    ],
)
def test_what_cannot_be_described_is_refused(pixels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid_descriptor(pixels)


def test_a_wrong_grid_is_refused() -> None:
    with pytest.raises(InputError, match="grid is 0"):
        grid_descriptor(plain(1, 2, 3), grid=0)
