"""What a scene can contain, and how it is painted: shapes with a texture on a quiet background.

Every shape is drawn at three times the final size and averaged down, which gives smooth edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, radians, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

KINDS = ("circle", "square", "triangle", "star", "heart", "diamond", "moon", "cross", "flower", "arrow")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black")
SIZES = ("small", "medium", "large")
TEXTURES = ("solid", "striped", "dotted", "checkered", "outlined")
PLACES = (
    "top left", "top", "top right", "left", "middle", "right", "bottom left", "bottom", "bottom right",
)  # fmt: skip
BACKGROUND_STYLES = ("plain", "gradient", "hills", "bokeh", "grain")
BACKGROUND_COLOURS = ("cream", "sky", "mint", "lavender", "blush", "stone")

SIDE = 96
RADII = (8.5, 12.5, 17.0)

Colour = tuple[int, int, int]
Points = NDArray[np.float64]

_OVERSAMPLING = 3
_SHAPE_RGB: tuple[Colour, ...] = (
    (214, 60, 66), (240, 136, 44), (246, 203, 70), (74, 158, 92), (58, 122, 204),
    (126, 82, 178), (241, 142, 182), (139, 92, 60), (46, 48, 58),
)  # fmt: skip
_BACKGROUND_RGB: tuple[Colour, ...] = (
    (250, 244, 228), (222, 236, 247), (222, 242, 230), (232, 226, 245), (250, 229, 228), (230, 230, 226),
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """One object of a scene. The first five fields index KINDS, COLOURS, SIZES, TEXTURES and PLACES.

    `x` and `y` are the centre in pixels from the left and the top; `turn` (degrees) and `shade` (about
    -1 to 1, darker to lighter) are seen in the picture only: no caption speaks of them.
    """

    kind: int
    colour: int
    size: int
    texture: int
    place: int
    x: float
    y: float
    turn: float
    shade: float

    @property
    def radius(self) -> float:
        """Half the width in pixels."""
        return RADII[self.size]


@dataclass(frozen=True)
class Background:
    """What lies behind the shapes: `style` indexes BACKGROUND_STYLES, `colour` BACKGROUND_COLOURS."""

    style: int
    colour: int


def paint(shapes: Sequence[Shape], background: Background, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The picture (96, 96, 3) of a scene; `rng` decides the details that nothing else records."""
    canvas = Image.fromarray(_paint_background(background, rng))
    for shape in shapes:
        _paint_shape(canvas, shape, rng)
    return np.asarray(canvas)


def _paint_shape(canvas: Image.Image, shape: Shape, rng: np.random.Generator) -> None:
    reach = int(shape.radius * 1.15) + 3
    left, top = int(shape.x) - reach, int(shape.y) - reach
    side = (2 * reach + 1) * _OVERSAMPLING
    centre = (np.array([shape.x, shape.y]) - (left, top)) * _OVERSAMPLING
    outline = _turned(_OUTLINES[shape.kind], shape.turn) * shape.radius * _OVERSAMPLING + centre
    corners = [(float(x), float(y)) for x, y in outline]

    colour = _mix(_SHAPE_RGB[shape.colour], (255, 255, 255) if shape.shade > 0 else (0, 0, 0), 0.12 * abs(shape.shade))
    # A texture's second tone is a tint of the first, so that the shape keeps one nameable colour.
    tint = _mix(colour, (255, 255, 255), 0.68)
    edge = _mix(colour, (0, 0, 0), 0.25)
    surface = _surface(TEXTURES[shape.texture], colour, tint, shape.radius, side, rng)
    pen = ImageDraw.Draw(surface)
    closed = [*corners, corners[0], corners[1]]
    if TEXTURES[shape.texture] == "outlined":
        # The stroke is centred on the outline and clipped by it, so half of the width is seen.
        pen.line(closed, fill=colour, width=int(0.44 * shape.radius * _OVERSAMPLING), joint="curve")
    pen.line(closed, fill=edge, width=_OVERSAMPLING + 1, joint="curve")
    mask = Image.new("L", (side, side))
    ImageDraw.Draw(mask).polygon(corners, fill=255)
    small_mask = mask.reduce(_OVERSAMPLING)
    shadow = small_mask.point([level // 6 for level in range(256)])
    canvas.paste((40, 40, 60), (left + 1, top + 2), shadow)
    canvas.paste(surface.reduce(_OVERSAMPLING), (left, top), small_mask)


def _surface(
    texture: str, colour: Colour, tint: Colour, radius: float, side: int, rng: np.random.Generator
) -> Image.Image:
    """A square picture of the texture, `side` pixels wide at drawing scale."""
    if texture == "solid":
        return Image.new("RGB", (side, side), colour)
    if texture == "outlined":
        return Image.new("RGB", (side, side), tint)
    # The pattern grows with the shape a little, so that a small shape still shows a few periods.
    period = (2.5 + 0.25 * radius) * _OVERSAMPLING
    direction = rng.uniform(0, pi) if texture == "striped" else rng.uniform(-0.3, 0.3)
    phase = rng.uniform(0, period, 2)
    line = np.arange(side)
    u = (cos(direction) * line[None, :] + sin(direction) * line[:, None] + phase[0]) / period
    v = (cos(direction) * line[:, None] - sin(direction) * line[None, :] + phase[1]) / period
    if texture == "striped":
        light = u % 1 < 0.45
    elif texture == "dotted":
        light = (u % 1 - 0.5) ** 2 + (v % 1 - 0.5) ** 2 < 0.09
    else:
        light = np.floor(u) % 2 == np.floor(v) % 2
    return Image.fromarray(np.where(light[..., None], np.array(tint, np.uint8), np.array(colour, np.uint8)))


def _paint_background(background: Background, rng: np.random.Generator) -> NDArray[np.uint8]:
    base = np.array(_BACKGROUND_RGB[background.colour], dtype=np.float64)
    deep = base * 0.90 - 4
    line = np.linspace(0, 1, SIDE)
    depth = np.zeros((SIDE, SIDE))
    match BACKGROUND_STYLES[background.style]:
        case "plain":
            pass
        case "gradient":
            direction = rng.uniform(0, 2 * pi)
            slope = cos(direction) * (line[None, :] - 0.5) + sin(direction) * (line[:, None] - 0.5)
            depth = 0.5 + slope * 0.9
        case "hills":
            for height in (rng.uniform(0.35, 0.5), rng.uniform(0.65, 0.8)):
                crest = height + 0.06 * np.sin(2 * pi * (rng.uniform(0.6, 1.3) * line + rng.uniform()))
                # Dividing by two pixels' height smooths the crest.
                depth += 0.6 * np.clip((line[:, None] - crest) * SIDE / 2, 0, 1)
        case "bokeh":
            for x, y, radius in rng.uniform((0, 0, 0.08), (1, 1, 0.26), (7, 3)):
                distance = np.hypot(line[None, :] - x, line[:, None] - y)
                depth += 0.45 * np.clip((radius - distance) * SIDE / 4, 0, 1)
        case _:  # grain
            coarse = rng.normal(size=(SIDE // 2, SIDE // 2)).repeat(2, axis=0).repeat(2, axis=1)
            depth = 0.5 + 0.13 * coarse
    # Depth 0 is the base colour, 1 the deep one.
    return np.asarray(base + np.clip(depth, 0, 1.2)[..., None] * (deep - base), dtype=np.uint8)


def _mix(colour: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def _turned(points: Points, degrees: float) -> Points:
    angle = radians(degrees)
    return np.asarray(points @ np.array([[cos(angle), sin(angle)], [-sin(angle), cos(angle)]]))


def _polar(radius: NDArray[np.float64] | float, angle: NDArray[np.float64]) -> Points:
    """Points (k, 2) at these distances and angles; angle 0 points up, y grows downwards."""
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)


def _outlines() -> tuple[Points, ...]:
    """The outline (k, 2) of each kind, in the order of KINDS, about 1 in radius around the origin."""
    full = np.linspace(0, 2 * pi, 60, endpoint=False)
    heart = np.stack(
        [
            16 * np.sin(full) ** 3,
            -(13 * np.cos(full) - 5 * np.cos(2 * full) - 2 * np.cos(3 * full) - np.cos(4 * full)) - 2.5,
        ],
        axis=1,
    )
    # A moon is most of the rim of a disc, closed by the far rim of a smaller disc that bites it at the right.
    tip, bite = 0.75, 0.38
    inner = np.arctan2(np.sin(tip), np.cos(tip) - bite)
    rim = _polar(1.0, np.linspace(tip, 2 * pi - tip, 40) + pi / 2)
    bitten = _polar(np.hypot(np.sin(tip), np.cos(tip) - bite), np.linspace(2 * pi - inner, inner, 30) + pi / 2)
    star = _polar(np.tile([1.08, 0.46], 5), np.arange(10) * pi / 5)
    arm = 0.34
    cross = np.array(
        [(-arm, -1), (arm, -1), (arm, -arm), (1, -arm), (1, arm), (arm, arm),
         (arm, 1), (-arm, 1), (-arm, arm), (-1, arm), (-1, -arm), (-arm, -arm)]
    )  # fmt: skip
    arrow = np.array(
        [(1.05, 0), (0.2, -0.8), (0.2, -0.33), (-1, -0.33), (-1, 0.33), (0.2, 0.33), (0.2, 0.8)]
    )  # fmt: skip
    return (
        _polar(0.95, full),
        np.array([(-0.84, -0.84), (0.84, -0.84), (0.84, 0.84), (-0.84, 0.84)]),
        _polar(1.12, np.arange(3) * 2 * pi / 3),
        star,
        heart / 16,
        np.array([(0, -1.12), (0.72, 0), (0, 1.12), (-0.72, 0)]),
        _turned(np.concatenate([rim, bitten + np.array([bite, 0.0])]), -25),
        cross,
        _polar(0.8 + 0.25 * np.cos(5 * full), full),
        arrow,
    )


_OUTLINES = _outlines()
