"""Five English captions for a scene, each telling another part of it in other words.

Caption 0 names all objects by colour and kind, 1 how two of them lie to each other, 2 two of them with
their texture, 3 two of them by size and place without colour, 4 is short and counts.
What is said depends on the scene alone; how it is said - the template, the words a speaker prefers, which
objects are picked - is drawn at random and has no trace in the picture.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from truepair.data.formats.scenes.scene_drawing import Shape

CAPTIONS = 5
TEMPLATES = 3
SPEAKERS = 3

# One word per speaker for each kind, colour, ... in the order of the tuples in `scene_drawing`. No word
# stands for two different things, so a word in a caption can be traced back to what it names.
KIND_WORDS = (
    ("circle", "disc", "ball"),
    ("square", "box", "block"),
    ("triangle", "wedge", "pyramid"),
    ("star", "star", "starburst"),
    ("heart", "heart", "love heart"),
    ("diamond", "rhombus", "lozenge"),
    ("moon", "crescent", "half-moon"),
    ("cross", "plus sign", "cross"),
    ("flower", "blossom", "bloom"),
    ("arrow", "pointer", "arrow"),
)
COLOUR_WORDS = (
    ("red", "crimson", "scarlet"),
    ("orange", "tangerine", "amber"),
    ("yellow", "golden", "lemon"),
    ("green", "emerald", "jade"),
    ("blue", "azure", "cobalt"),
    ("purple", "violet", "plum"),
    ("pink", "rosy", "blush"),
    ("brown", "chestnut", "chocolate"),
    ("black", "charcoal", "ebony"),
)
SIZE_WORDS = (("small", "little", "tiny"), ("medium-sized", "mid-sized", "medium"), ("large", "big", "huge"))
TEXTURE_WORDS = (
    ("plain", "solid", "unpatterned"),
    ("striped", "stripy", "banded"),
    ("dotted", "spotted", "polka-dot"),
    ("checkered", "checked", "chequered"),
    ("outlined", "hollow", "rimmed"),
)
PLACE_WORDS = (
    ("in the top left corner", "at the upper left", "up on the left"),
    ("at the top", "in the upper part", "at top centre"),
    ("in the top right corner", "at the upper right", "up on the right"),
    ("on the left", "at the left edge", "halfway down the left"),
    ("in the middle", "in the centre", "in the very middle"),
    ("on the right", "at the right edge", "halfway down the right"),
    ("in the bottom left corner", "at the lower left", "down on the left"),
    ("at the bottom", "in the lower part", "at bottom centre"),
    ("in the bottom right corner", "at the lower right", "down on the right"),
)
RELATION_WORDS = (
    ("to the left of", "left of", "on the left-hand side of"),
    ("to the right of", "right of", "on the right-hand side of"),
    ("above", "over", "higher than"),
    ("below", "under", "lower than"),
)
_NUMBERS = ("no", "one", "two", "three", "four")

Writer = Callable[[Sequence[Shape], int, int, np.random.Generator], str]


def write_captions(shapes: Sequence[Shape], rng: np.random.Generator) -> tuple[tuple[str, ...], list[int], list[int]]:
    """Five captions of the scene, and for each the template (0-2) and the speaker (0-2) behind it."""
    templates = rng.integers(TEMPLATES, size=CAPTIONS).tolist()
    speakers = rng.integers(SPEAKERS, size=CAPTIONS).tolist()
    said = zip(_WRITERS, templates, speakers, strict=True)
    phrases = [write(shapes, template, speaker, rng) for write, template, speaker in said]
    return tuple(f"{phrase[0].upper()}{phrase[1:]}." for phrase in phrases), templates, speakers


def relation(one: Shape, other: Shape) -> int:
    """How `one` lies to `other`, an index of RELATIONS: along the axis on which they are further apart."""
    across, down = one.x - other.x, one.y - other.y
    if abs(across) >= abs(down):
        return 0 if across < 0 else 1
    return 2 if down < 0 else 3


def _everything(shapes: Sequence[Shape], template: int, speaker: int, rng: np.random.Generator) -> str:
    names = _join([_a(_coloured(shape, speaker)) for shape in _shuffled(shapes, rng)])
    return (names, f"a picture of {names}", f"this drawing shows {names}")[template]


def _two_related(shapes: Sequence[Shape], template: int, speaker: int, rng: np.random.Generator) -> str:
    one, other = _shuffled(shapes, rng)[:2]
    where = RELATION_WORDS[relation(one, other)][speaker]
    first, second = _coloured(one, speaker), _coloured(other, speaker)
    return (
        f"{_a(first)} {where} {_a(second)}",
        f"the {first} is {where} the {second}",
        f"{where} the {second} there is {_a(first)}",
    )[template]


def _two_textured(shapes: Sequence[Shape], template: int, speaker: int, rng: np.random.Generator) -> str:
    first, second = (
        _a(f"{TEXTURE_WORDS[shape.texture][speaker]} {_coloured(shape, speaker)}")
        for shape in _shuffled(shapes, rng)[:2]
    )
    return (f"{first} and {second}", f"{first} together with {second}", f"we see {first} and also {second}")[template]


def _two_placed(shapes: Sequence[Shape], template: int, speaker: int, rng: np.random.Generator) -> str:
    one, other = _shuffled(shapes, rng)[:2]
    first, second = (
        _a(f"{SIZE_WORDS[shape.size][speaker]} {KIND_WORDS[shape.kind][speaker]}") for shape in (one, other)
    )
    here, there = (PLACE_WORDS[shape.place][speaker] for shape in (one, other))
    return (
        f"{first} {here} and {second} {there}",
        f"{here} there is {first}, {there} {second}",
        f"{first} sits {here}, while {second} is {there}",
    )[template]


def _counted(shapes: Sequence[Shape], template: int, speaker: int, rng: np.random.Generator) -> str:
    order = _shuffled(shapes, rng)
    if template == 0:
        kinds = Counter(shape.kind for shape in order)
        return _join([_number_of(KIND_WORDS[kind][speaker], count) for kind, count in kinds.items()])
    total = _NUMBERS[len(shapes)]
    if template == 1:
        colours = dict.fromkeys(COLOUR_WORDS[shape.colour][speaker] for shape in order)
        return f"{total} shapes coloured {_join(list(colours))}"
    colour, kind = COLOUR_WORDS[order[0].colour][speaker], KIND_WORDS[order[1].kind][speaker]
    some = f"something {colour} and {_a(kind)}"
    return some if len(shapes) == 2 else f"{total} things, {some} among them"


_WRITERS: tuple[Writer, ...] = (_everything, _two_related, _two_textured, _two_placed, _counted)


def plural(noun: str) -> str:
    """The plural of a kind's name."""
    return noun + ("es" if noun.endswith(("s", "x", "sh", "ch")) else "s")


def _coloured(shape: Shape, speaker: int) -> str:
    return f"{COLOUR_WORDS[shape.colour][speaker]} {KIND_WORDS[shape.kind][speaker]}"


def _a(phrase: str) -> str:
    # "unpatterned" starts with a vowel sound too; no word here does what "unit" or "hour" do.
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def _number_of(noun: str, count: int) -> str:
    return _a(noun) if count == 1 else f"{_NUMBERS[count]} {plural(noun)}"


def _join(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _shuffled(shapes: Sequence[Shape], rng: np.random.Generator) -> list[Shape]:
    return [shapes[index] for index in rng.permutation(len(shapes))]
