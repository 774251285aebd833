"""Built-in data: small pictures of coloured shapes, each with five captions, drawn from a seed.

Which part of a scene is known to whom is fixed by construction:

- shared: kind, colour, size, texture, place and number of the objects. The picture shows all of it; a
  caption tells some of it, the five together much of it.
- picture only: style and colour of the background, and (not recorded) each shape's turn, shade and jitter.
- text only: the sentence template and the speaker, who settles which of several synonyms is used.

`SceneFactors` records all three, so that what a representation keeps and drops can be measured.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truepair.data.formats.scenes.scene_captions import write_captions
from truepair.data.formats.scenes.scene_drawing import (
    BACKGROUND_COLOURS,
    BACKGROUND_STYLES,
    COLOURS,
    KINDS,
    PLACES,
    RADII,
    SIDE,
    SIZES,
    TEXTURES,
    Background,
    Shape,
    paint,
)
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError

SPLITS = ("train", "dev", "test")
MOST_OBJECTS = 4
ABSENT = -1

Ints = NDArray[np.int64]

_COUNT_SHARES = (0.3, 0.4, 0.3)  # scenes of two, three and four objects
_TEXTURE_SHARES = (0.4, 0.15, 0.15, 0.15, 0.15)
_CELL_CENTRES = (20.0, 48.0, 76.0)
_JITTER = 6.0
_MARGIN = 5.0


@dataclass(frozen=True)
class SceneFactors:
    """What was drawn and said, for n scenes of up to four objects and five captions each.

    Per object (n, 4), ABSENT (-1) where a scene has fewer objects: `kind`, `colour`, `size`, `texture`,
    `place`, indices of KINDS, COLOURS, SIZES, TEXTURES and PLACES in `truepair.data.formats.scenes.scene_drawing`.
    Per picture (n,): `background_style`, `background_colour`, indices of BACKGROUND_STYLES and
    BACKGROUND_COLOURS. Per caption (n, 5): `template` and `speaker`, each 0, 1 or 2.
    """

    kind: Ints
    colour: Ints
    size: Ints
    texture: Ints
    place: Ints
    background_style: Ints
    background_colour: Ints
    template: Ints
    speaker: Ints

    def shared(self) -> dict[str, Ints]:
        """Targets that picture and captions have in common: multi-hot (n, classes), and `count` (n,)."""
        classes = {"kind": KINDS, "colour": COLOURS, "size": SIZES, "texture": TEXTURES, "place": PLACES}
        hot = {name: _multi_hot(getattr(self, name), len(names)) for name, names in classes.items()}
        return {**hot, "count": (self.kind != ABSENT).sum(axis=1)}

    def picture_only(self) -> dict[str, Ints]:
        """Class labels (n,) that no caption gives away."""
        return {"background_style": self.background_style, "background_colour": self.background_colour}

    def text_only(self) -> dict[str, Ints]:
        """Class labels (n, 5), one a caption, that the picture does not give away."""
        return {"template": self.template, "speaker": self.speaker}


@dataclass(frozen=True)
class Scenes:
    """n drawn scenes: `pictures` (n, 96, 96, 3) uint8 RGB, `captions` n tuples of 5 strings, `features`
    (n, 36, 56) float16 by `grid_descriptor`, `factors`, and `ids` such as "scene-train-00000"."""

    pictures: NDArray[np.uint8]
    captions: list[tuple[str, ...]]
    features: NDArray[np.float16]
    factors: SceneFactors
    ids: list[str]


class _Drawn(NamedTuple):
    picture: NDArray[np.uint8]
    captions: tuple[str, ...]
    features: NDArray[np.float16]
    shapes: tuple[Shape, ...]
    background: Background
    templates: list[int]
    speakers: list[int]


def draw_scenes(count: int, *, seed: int, split: str = "train", workers: int = 1) -> Scenes:
    """`count` scenes of one split ("train", "dev" or "test").

    Scene i depends on (seed, split, i) alone: drawing more scenes, or with more workers, changes no bit of
    it (between two makes of processor, the last bit of a feature may differ). With `workers` > 1 new
    processes share the work; a script then needs the usual `if __name__ == "__main__":` around its main part.

    Raises InputError for a count or a number of workers below 1, a seed outside [0, 2**32), or an unknown
    split.
    """
    if count < 1 or workers < 1:
        raise InputError(f"count is {count} and workers is {workers}; both must be at least 1.")
    if not 0 <= seed < 2**32:
        raise InputError(f"seed is {seed}; expected a whole number from 0 to {2**32 - 1}.")
    if split not in SPLITS:
        raise InputError(f"split is {split!r}; expected one of {', '.join(SPLITS)}.")
    draw = partial(_draw_one, seed, SPLITS.index(split))
    if workers == 1:
        drawn = [draw(index) for index in range(count)]
    else:
        # Forking a process in which torch or BLAS runs threads can hang; a fresh process cannot.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            drawn = list(pool.map(draw, range(count), chunksize=100))
    return Scenes(
        pictures=np.stack([scene.picture for scene in drawn]),
        captions=[scene.captions for scene in drawn],
        features=np.stack([scene.features for scene in drawn]),
        factors=_factors(drawn),
        ids=[f"scene-{split}-{index:05d}" for index in range(count)],
    )


def _draw_one(seed: int, split: int, index: int) -> _Drawn:
    # One stream each for content, paint and words: a new template must not move a shape.
    streams = np.random.SeedSequence([seed, split, index]).spawn(3)
    content, brush, pen = (np.random.default_rng(stream) for stream in streams)
    shapes, background = _compose(content)
    picture = paint(shapes, background, brush)
    captions, templates, speakers = write_captions(shapes, pen)
    features = grid_descriptor(picture).astype(np.float16)
    return _Drawn(picture, captions, features, shapes, background, templates, speakers)


def _compose(rng: np.random.Generator) -> tuple[tuple[Shape, ...], Background]:
    """Shapes that do not touch, no two alike in kind and colour together, and a background."""
    count = int(rng.choice((2, 3, 4), p=_COUNT_SHARES))
    looks = rng.choice(len(KINDS) * len(COLOURS), size=count, replace=False)
    sizes = rng.integers(len(SIZES), size=count)
    textures = rng.choice(len(TEXTURES), size=count, p=_TEXTURE_SHARES)
    turns, shades = rng.uniform(-14, 14, count), rng.uniform(-1, 1, count)
    places, centres = _arrange([RADII[size] for size in sizes], rng)
    shapes = tuple(
        Shape(
            kind=int(looks[i]) // len(COLOURS),
            colour=int(looks[i]) % len(COLOURS),
            size=int(sizes[i]),
            texture=int(textures[i]),
            place=places[i],
            x=centres[i][0],
            y=centres[i][1],
            turn=float(turns[i]),
            shade=float(shades[i]),
        )
        for i in range(count)
    )
    style, colour = rng.integers((len(BACKGROUND_STYLES), len(BACKGROUND_COLOURS))).tolist()
    return shapes, Background(style, colour)


def _arrange(radii: Sequence[float], rng: np.random.Generator) -> tuple[list[int], list[tuple[float, float]]]:
    """Places and centres of discs of these radii, tried at random until no two overlap.

    Four large discs, the worst case, fit in one try of fifty; on average a scene takes two or three.
    """
    while True:
        places = rng.choice(len(PLACES), size=len(radii), replace=False).tolist()
        jitter = rng.uniform(-_JITTER, _JITTER, size=(len(radii), 2))
        centres = []
        for place, radius, (right, down) in zip(places, radii, jitter, strict=True):
            low, high = radius + _MARGIN, SIDE - radius - _MARGIN
            x = min(max(_CELL_CENTRES[place % 3] + right, low), high)
            y = min(max(_CELL_CENTRES[place // 3] + down, low), high)
            centres.append((float(x), float(y)))
        discs = zip(centres, radii, strict=True)  # with a pixel between every two
        if all(float(np.hypot(a - c, b - d)) - r - s >= 1 for ((a, b), r), ((c, d), s) in combinations(discs, 2)):
            return places, centres


def _factors(drawn: Sequence[_Drawn]) -> SceneFactors:
    def per_object(name: str) -> Ints:
        table = np.full((len(drawn), MOST_OBJECTS), ABSENT, dtype=np.int64)
        for row, scene in zip(table, drawn, strict=True):
            row[: len(scene.shapes)] = [getattr(shape, name) for shape in scene.shapes]
        return table

    def per_scene(values: Iterable[object]) -> Ints:
        return np.array(list(values), dtype=np.int64)

    return SceneFactors(
        **{name: per_object(name) for name in ("kind", "colour", "size", "texture", "place")},
        background_style=per_scene(scene.background.style for scene in drawn),
        background_colour=per_scene(scene.background.colour for scene in drawn),
        template=per_scene(scene.templates for scene in drawn),
        speaker=per_scene(scene.speakers for scene in drawn),
    )


def _multi_hot(labels: Ints, classes: int) -> Ints:
    """(n, classes) with 1 where one of the row's labels (n, objects) is that class."""
    return np.asarray((labels[:, :, None] == np.arange(classes)).any(axis=1), dtype=np.int64)
