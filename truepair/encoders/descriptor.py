"""Region features of a picture without a network: a lattice of overlapping windows, each described by hand.

The picture is cut into (grid + 1) x (grid + 1) cells; a window is a block of 2 x 2 neighbouring cells, so
neighbouring windows overlap by half. A window's 56 numbers, in this order (the slices below name them):

    36  oriented gradients: 4 cells (top left, top right, bottom left, bottom right) x 9 orientations in
        [0, 180) degrees, bin b centred on 20 b degrees: 3 * sqrt(share of the window's gradient)
     6  mean of Lab as L / 50 - 1, a / 40, b / 40, then the deviations of L, a, b within the window / 15
     8  hue histogram, bin b centred on 45 b degrees, so red is bin 0: 2 * sqrt(mean saturation of the bin)
     4  lightness histogram from dark to light: 2 * sqrt(share of the window's pixels)
     2  the window's row and column, from -1 to 1

All scales are fixed constants, never fitted to data, so that a split cannot leak into another one.
The same recipe is good enough for a two-tower model to learn from; it is no match for a pretrained network.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from truepair.encoders.decode import check_rgb
from truepair.errors import InputError

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]

ORIENTATIONS, HUES, LIGHTNESSES = 9, 8, 4
GRADIENTS = slice(0, 4 * ORIENTATIONS)
LAB_MEAN = slice(36, 39)
LAB_DEVIATION = slice(39, 42)
HUE = slice(42, 50)
LIGHTNESS = slice(50, 54)
POSITION = slice(54, 56)
DESCRIPTOR_SIZE = 56

# A cell needs a few pixels before a histogram over it means anything.
SMALLEST_CELL = 2

# Scales that bring every group to roughly unit size on drawings and on photographs.
_GRADIENT_SCALE = 3.0
_AB_SCALE = 40.0
_DEVIATION_SCALE = 15.0
_HISTOGRAM_SCALE = 2.0
# Mean gradient (grey levels a pixel) below which a cell counts as flat: faint noise is not texture.
_FLAT = 1.0

# sRGB to CIE XYZ (D65), rows divided by the white point so that white is (1, 1, 1).
_RGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_RGB_TO_XYZ = _RGB_TO_XYZ / _RGB_TO_XYZ.sum(axis=1, keepdims=True)


def grid_descriptor(pixels: NDArray[np.uint8], *, grid: int = 6) -> Floats:
    """Region features (grid**2, 56) of one RGB picture (H, W, 3) uint8, windows in reading order.

    Values lie roughly in [-3, 3]; a constant picture gives zeros for gradients and deviations, never NaN.
    The work grows with the number of pixels: shrink photographs to about 100-200 pixels first.

    Raises InputError if the array is not (H, W, 3) uint8 or a side is shorter than 2 * (grid + 1) pixels.
    """
    _check(pixels, grid)
    height, width = pixels.shape[:2]
    cell = _cell_of_each_pixel(height, width, grid)
    n_cells = (grid + 1) ** 2
    area = np.bincount(cell, minlength=n_cells).reshape(grid + 1, grid + 1, 1)

    def per_cell(weights: Floats) -> NDArray[np.float64]:
        sums = np.bincount(cell, weights=weights, minlength=n_cells)
        return np.asarray(sums.reshape(grid + 1, grid + 1), dtype=np.float64)

    def histogram(position: Floats, bins: int, weights: Floats | None) -> NDArray[np.float64]:
        return _soft_histogram(cell, position, bins, weights, n_cells).reshape(grid + 1, grid + 1, bins)

    lab = _lab(pixels)
    orientation, strength = _gradient(pixels)
    hue, saturation = _hue(pixels)

    window_area = _window_sum(area)
    lab_mean = _window_sum(np.stack([per_cell(plane) for plane in lab], axis=2)) / window_area
    lab_square = _window_sum(np.stack([per_cell(plane * plane) for plane in lab], axis=2)) / window_area
    lab_deviation = np.sqrt(np.maximum(lab_square - lab_mean**2, 0.0))
    hues = _window_sum(histogram(hue, HUES, saturation)) / window_area
    # Soft bins over [0, 100]: an open line, not a circle, so the position stops at the last bin.
    lightness = _window_sum(histogram(lab[0] * np.float32((LIGHTNESSES - 1) / 100), LIGHTNESSES, None)) / window_area

    gradient = _four_cells(histogram(orientation, ORIENTATIONS, strength) / area)
    share = gradient / (gradient.sum(axis=2, keepdims=True) + 4 * _FLAT)

    line = np.linspace(-1.0, 1.0, grid) if grid > 1 else np.zeros(1)
    position = np.stack(np.meshgrid(line, line, indexing="ij"), axis=2)
    groups = (
        _GRADIENT_SCALE * np.sqrt(share),
        lab_mean / (50.0, _AB_SCALE, _AB_SCALE) - (1.0, 0.0, 0.0),
        lab_deviation / _DEVIATION_SCALE,
        _HISTOGRAM_SCALE * np.sqrt(hues),
        _HISTOGRAM_SCALE * np.sqrt(lightness),
        position,
    )
    return np.concatenate(groups, axis=2).reshape(grid**2, DESCRIPTOR_SIZE).astype(np.float32)


def _check(pixels: NDArray[np.uint8], grid: int) -> None:
    if grid < 1:
        raise InputError(f"grid is {grid}; expected a whole number of at least 1 (6 gives 36 regions).")
    check_rgb(pixels)
    smallest = SMALLEST_CELL * (grid + 1)
    if min(pixels.shape[:2]) < smallest:
        raise InputError(
            f"a picture is {pixels.shape[0]} x {pixels.shape[1]} pixels; a grid of {grid} needs at least "
            f"{smallest} x {smallest}. Enlarge the picture or use a smaller grid."
        )


# A folder of pictures has few sizes; eight of them cost a few megabytes.
@lru_cache(maxsize=8)
def _cell_of_each_pixel(height: int, width: int, grid: int) -> Ints:
    """The cell index (H * W,) of every pixel, cells counted in reading order."""

    def line(length: int) -> Ints:
        edges = np.round(np.arange(1, grid + 1) * length / (grid + 1))
        return np.searchsorted(edges, np.arange(length), side="right")

    cells: Ints = (line(height)[:, None] * (grid + 1) + line(width)[None, :]).ravel()
    cells.flags.writeable = False
    return cells


def _four_cells(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """The four cells of each window side by side: (g + 1, g + 1, c) to (g, g, 4 c)."""
    return np.concatenate((cells[:-1, :-1], cells[:-1, 1:], cells[1:, :-1], cells[1:, 1:]), axis=2)


def _window_sum(cells: NDArray[np.generic]) -> NDArray[np.float64]:
    """The sum of the four cells of each window: (g + 1, g + 1, c) to (g, g, c)."""
    values = cells.astype(np.float64)
    rows = values[:-1] + values[1:]
    return np.asarray(rows[:, :-1] + rows[:, 1:])


def _soft_histogram(
    cell: Ints, position: Floats, bins: int, weights: Floats | None, n_cells: int
) -> NDArray[np.float64]:
    """Counts (n_cells * bins,): each pixel shares its weight between the two bins around its position.

    The last bin wraps around to the first one; a position that never exceeds bins - 1 does not notice.
    """
    below = position.astype(np.intp)
    upper = position - below
    lower = 1 - upper
    if weights is not None:
        upper *= weights
        lower *= weights
    start = cell * bins
    first = start + below % bins
    second = start + (below + 1) % bins
    # The bins of all cells lie in one row, so one count serves all cells.
    counts = np.bincount(first, weights=lower, minlength=n_cells * bins)
    counts += np.bincount(second, weights=upper, minlength=n_cells * bins)
    return np.asarray(counts, dtype=np.float64)


def _gradient(pixels: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Per pixel the orientation in bins, in [0, 9], and the strength in grey levels a pixel, both (H * W,).

    As Dalal and Triggs (2005) do, each pixel takes the colour channel with the strongest gradient, so an
    edge between two colours of one lightness is seen. The orientation is that of the gradient: 0 across a
    vertical edge, 90 degrees across a horizontal one.
    """
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32)
    across, down = np.zeros_like(planes), np.zeros_like(planes)
    # Central differences; the outermost pixels have one neighbour only and count as flat.
    np.subtract(planes[:, :, 2:], planes[:, :, :-2], out=across[:, :, 1:-1])
    np.subtract(planes[:, 2:, :], planes[:, :-2, :], out=down[:, 1:-1, :])
    square = across * across + down * down
    best_across, best_down, best = across[0], down[0], square[0]
    for channel in (1, 2):
        stronger = square[channel] > best
        best_across = np.where(stronger, across[channel], best_across)
        best_down = np.where(stronger, down[channel], best_down)
        best = np.maximum(best, square[channel])
    turn = np.arctan2(best_down, best_across) * np.float32(1 / np.pi)  # in half turns, [-1, 1]
    turn += turn < 0
    return (turn * np.float32(ORIENTATIONS)).ravel(), (np.sqrt(best) * np.float32(0.5)).ravel()


def _hue(pixels: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Per pixel the hue in bins, in [0, 8], and the saturation in [0, 1], both (H * W,).

    Saturation is the spread of the channels, max - min. Dividing it by max, as HSV does, would give the
    noise of a near-black pixel full weight.
    """
    red, green, blue = (pixels[..., channel].ravel().astype(np.float32) for channel in range(3))
    top = np.maximum(np.maximum(red, green), blue)
    spread = top - np.minimum(np.minimum(red, green), blue)
    divisor = np.maximum(spread, 1)
    sector = np.where(
        top == red,
        (green - blue) / divisor,
        np.where(top == green, (blue - red) / divisor + 2, (red - green) / divisor + 4),
    )
    sector += 6 * (sector < 0)
    return sector * np.float32(HUES / 6), spread * np.float32(1 / 255)


@lru_cache(maxsize=1)
def _linear_light() -> NDArray[np.float32]:
    """Linear light in [0, 1] of each sRGB level, (256,)."""
    level = np.arange(256) / 255
    return np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _lab(pixels: NDArray[np.uint8]) -> tuple[Floats, Floats, Floats]:
    """CIE L in [0, 100], a and b (about -110 to 110), each (H * W,) in float32."""
    light = _linear_light()[pixels.reshape(-1, 3).T]
    bent = []
    for red, green, blue in _RGB_TO_XYZ.astype(np.float32):
        value = red * light[0] + green * light[1] + blue * light[2]
        # The straight piece near black is the definition's; it keeps the slope of the cube root finite.
        bent.append(np.where(value > 0.008856, np.cbrt(value), 7.787 * value + np.float32(16 / 116)))
    x, y, z = bent
    return np.clip(116 * y - 16, 0, 100), 500 * (x - y), 200 * (y - z)
