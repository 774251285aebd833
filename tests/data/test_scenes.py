"""The built-in scenes: reproducible, and every caption true to what was drawn."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from truepair.data.formats.scenes.scene_captions import (
    COLOUR_WORDS,
    KIND_WORDS,
    PLACE_WORDS,
    RELATION_WORDS,
    SIZE_WORDS,
    TEXTURE_WORDS,
    plural,
)
from truepair.data.formats.scenes.scene_drawing import (
    BACKGROUND_COLOURS,
    BACKGROUND_STYLES,
    COLOURS,
    KINDS,
    PLACES,
    SIDE,
    SIZES,
    TEXTURES,
    Background,
    Shape,
    paint,
)
from truepair.data.formats.scenes.scenes import ABSENT, MOST_OBJECTS, SceneFactors, Scenes, draw_scenes
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError

Table = Sequence[tuple[str, ...]]
Thing = dict[str, int]

COUNT = 400
NUMBERS = {"two": 2, "three": 3, "four": 4}


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return draw_scenes(COUNT, seed=11)


def meanings(table: Table, *, plurals: bool = False) -> dict[str, int]:
    """Every word of a table with the index it stands for."""
    words = {word: index for index, row in enumerate(table) for word in row}
    if plurals:
        words |= {plural(word): index for word, index in list(words.items())}
    return words


KIND, COLOUR = meanings(KIND_WORDS, plurals=True), meanings(COLOUR_WORDS)
SIZE, TEXTURE = meanings(SIZE_WORDS), meanings(TEXTURE_WORDS)
PLACE, RELATION = meanings(PLACE_WORDS), meanings(RELATION_WORDS)


def one_of(words: Iterable[str]) -> str:
    # Longest first, so that "half-moon" is not read as "moon".
    return "(" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + ")"


def found(words: dict[str, int], text: str) -> list[int]:
    """What the words of this table in the text stand for, in order; whole words only."""
    return [words[hit] for hit in re.findall(rf"(?<![\w-]){one_of(words)}(?![\w-])", text)]


def objects(scenes: Scenes, index: int) -> list[Thing]:
    """The scene's objects as dicts of factor -> index."""
    names = ("kind", "colour", "size", "texture", "place")
    table = {name: getattr(scenes.factors, name)[index] for name in names}
    return [{name: int(table[name][i]) for name in names} for i in range(MOST_OBJECTS) if table["kind"][i] != ABSENT]


def each_scene(scenes: Scenes) -> Iterator[tuple[list[Thing], list[str], int]]:
    for index, captions in enumerate(scenes.captions):
        yield objects(scenes, index), [caption.lower() for caption in captions], index


def assert_same(one: Scenes, other: Scenes) -> None:
    np.testing.assert_array_equal(one.pictures, other.pictures)
    np.testing.assert_array_equal(one.features, other.features)
    assert one.captions == other.captions
    assert one.ids == other.ids
    for field in fields(one.factors):
        np.testing.assert_array_equal(getattr(one.factors, field.name), getattr(other.factors, field.name))


def first(scenes: Scenes, count: int) -> Scenes:
    factors = {field.name: getattr(scenes.factors, field.name)[:count] for field in fields(scenes.factors)}
    return Scenes(
        scenes.pictures[:count],
        scenes.captions[:count],
        scenes.features[:count],
        SceneFactors(**factors),
        scenes.ids[:count],
    )


def test_shapes_and_types(scenes: Scenes) -> None:
    assert scenes.pictures.shape == (COUNT, SIDE, SIDE, 3)
    assert scenes.pictures.dtype == np.uint8
    assert scenes.features.shape == (COUNT, 36, 56)
    assert scenes.features.dtype == np.float16
    assert len(scenes.captions) == len(set(scenes.ids)) == COUNT
    assert scenes.ids[7] == "scene-train-00007"


def test_features_describe_the_pictures(scenes: Scenes) -> None:
    described = np.stack([grid_descriptor(picture) for picture in scenes.pictures[:5]])
    np.testing.assert_array_equal(scenes.features[:5], described.astype(np.float16))


def test_scene_i_does_not_depend_on_the_count_or_the_run(scenes: Scenes) -> None:
    assert_same(draw_scenes(30, seed=11), first(scenes, 30))


def test_workers_change_nothing(scenes: Scenes) -> None:
    assert_same(draw_scenes(130, seed=11, workers=2), first(scenes, 130))


def test_seeds_and_splits_share_no_picture(scenes: Scenes) -> None:
    others = [
        draw_scenes(100, seed=11, split="dev"),
        draw_scenes(100, seed=11, split="test"),
        draw_scenes(100, seed=12),
    ]
    pictures = [picture.tobytes() for part in (scenes, *others) for picture in part.pictures]
    assert len(set(pictures)) == len(pictures)
    assert others[1].ids[0] == "scene-test-00000"


def test_factors_are_in_range_and_every_class_occurs(scenes: Scenes) -> None:
    factors = scenes.factors
    counts = (factors.kind != ABSENT).sum(axis=1)
    assert set(counts) == {2, 3, 4}
    for name, classes in (
        ("kind", KINDS),
        ("colour", COLOURS),
        ("size", SIZES),
        ("texture", TEXTURES),
        ("place", PLACES),
    ):
        labels = getattr(factors, name)
        assert labels.shape == (COUNT, MOST_OBJECTS)
        assert set(labels.ravel()) == {ABSENT, *range(len(classes))}
        # Absent objects come last.
        np.testing.assert_array_equal(labels != ABSENT, np.arange(MOST_OBJECTS) < counts[:, None])
    assert set(factors.background_style) == set(range(len(BACKGROUND_STYLES)))
    assert set(factors.background_colour) == set(range(len(BACKGROUND_COLOURS)))
    for labels in (factors.template, factors.speaker):
        assert labels.shape == (COUNT, 5)
        assert set(labels.ravel()) == {0, 1, 2}


def test_probe_targets_follow_from_the_objects(scenes: Scenes) -> None:
    shared = scenes.factors.shared()
    for index, (things, _, _) in enumerate(each_scene(scenes)):
        assert shared["count"][index] == len(things)
        for name in ("kind", "colour", "size", "texture", "place"):
            assert set(np.flatnonzero(shared[name][index])) == {thing[name] for thing in things}
    assert shared["kind"].max() == 1
    assert set(scenes.factors.picture_only()) == {"background_style", "background_colour"}
    assert set(scenes.factors.text_only()) == {"template", "speaker"}


def test_what_is_exclusive_tells_nothing_about_the_other_side(scenes: Scenes) -> None:
    """Each speaker is as frequent on each background as elsewhere, up to chance."""
    for picture in scenes.factors.picture_only().values():
        for text in scenes.factors.text_only().values():
            for label in range(picture.max() + 1):
                shares = np.bincount(text[picture == label].ravel(), minlength=3) / text[picture == label].size
                assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / text[picture == label].size)


def test_no_two_objects_alike_or_in_one_place(scenes: Scenes) -> None:
    for things, _, _ in each_scene(scenes):
        assert len({(thing["kind"], thing["colour"]) for thing in things}) == len(things)
        assert len({thing["place"] for thing in things}) == len(things)


def test_no_word_means_two_things() -> None:
    tables = (KIND_WORDS, COLOUR_WORDS, SIZE_WORDS, TEXTURE_WORDS, RELATION_WORDS, PLACE_WORDS)
    rows = [set(row) for row in chain.from_iterable(tables)]
    assert sum(map(len, rows)) == len(set().union(*rows))
    assert [len(table) for table in tables[:4]] == [len(KINDS), len(COLOURS), len(SIZES), len(TEXTURES)]
    assert all(len(row) == 3 for row in chain.from_iterable(tables))


def test_five_distinct_captions_a_picture(scenes: Scenes) -> None:
    assert all(len(captions) == len(set(captions)) == 5 for captions in scenes.captions)


def test_every_word_for_a_property_is_true_of_the_scene(scenes: Scenes) -> None:
    tables = {"kind": KIND, "colour": COLOUR, "size": SIZE, "texture": TEXTURE}
    for things, captions, _ in each_scene(scenes):
        for name, words in tables.items():
            present = {thing[name] for thing in things}
            assert all(set(found(words, caption)) <= present for caption in captions), captions


def test_first_caption_names_every_object(scenes: Scenes) -> None:
    pattern = re.compile(f"{one_of(COLOUR)} {one_of(KIND)}")
    for things, captions, _ in each_scene(scenes):
        named = [(COLOUR[colour], KIND[kind]) for colour, kind in pattern.findall(captions[0])]
        assert sorted(named) == sorted((thing["colour"], thing["kind"]) for thing in things)


def test_second_caption_tells_a_true_relation(scenes: Scenes) -> None:
    pattern = re.compile(f"{one_of(COLOUR)} {one_of(KIND)}")
    for things, captions, index in each_scene(scenes):
        place = {(thing["colour"], thing["kind"]): divmod(thing["place"], 3) for thing in things}
        named = [(COLOUR[colour], KIND[kind]) for colour, kind in pattern.findall(captions[1])]
        one, other = reversed(named) if scenes.factors.template[index, 1] == 2 else named
        (row, column), (other_row, other_column) = place[one], place[other]
        (told,) = set(found(RELATION, captions[1]))
        assert (column < other_column, column > other_column, row < other_row, row > other_row)[told], captions[1]


def test_third_caption_tells_true_textures(scenes: Scenes) -> None:
    pattern = re.compile(f"{one_of(TEXTURE)} {one_of(COLOUR)} {one_of(KIND)}")
    for things, captions, _ in each_scene(scenes):
        told = {(TEXTURE[t], COLOUR[c], KIND[k]) for t, c, k in pattern.findall(captions[2])}
        assert len(told) == 2
        assert told <= {(thing["texture"], thing["colour"], thing["kind"]) for thing in things}


def test_fourth_caption_tells_true_sizes_and_places(scenes: Scenes) -> None:
    for things, captions, _ in each_scene(scenes):
        sizes, kinds, places = (found(words, captions[3]) for words in (SIZE, KIND, PLACE))
        assert len(sizes) == len(kinds) == len(places) == 2, captions[3]
        told = set(zip(sizes, kinds, places, strict=True))
        assert told <= {(thing["size"], thing["kind"], thing["place"]) for thing in things}, captions[3]


def test_fifth_caption_counts_right(scenes: Scenes) -> None:
    listed = re.compile(rf"\b(an?|{'|'.join(NUMBERS)}) {one_of(KIND)}")
    for things, captions, index in each_scene(scenes):
        total = re.match(r"(\w+) (?:shapes|things)", captions[4])
        if total:
            assert NUMBERS[total[1]] == len(things)
        template = scenes.factors.template[index, 4]
        if template == 0:
            told: Counter[int] = Counter()
            for number, kind in listed.findall(captions[4]):
                told[KIND[kind]] += NUMBERS.get(number, 1)
            assert told == Counter(thing["kind"] for thing in things)
        elif template == 1:
            assert set(found(COLOUR, captions[4])) == {thing["colour"] for thing in things}


def test_grammar(scenes: Scenes) -> None:
    singular = set(meanings(KIND_WORDS))
    for caption in chain.from_iterable(scenes.captions):
        assert re.fullmatch(r"[A-Z][a-z ,-]*[a-z]\.", caption), caption
        assert "  " not in caption
        for article, word in re.findall(r"\b([Aa]n?) (\w+)", caption):
            assert (article.lower() == "an") == (word[0] in "aeiou"), caption
        for noun in re.findall(r"\b(?:two|three|four) ([a-z-]+(?: sign| heart)?s?)", caption.lower()):
            assert noun in {"shapes", "things"} or noun in set(KIND) - singular, caption


def test_wording_is_varied(scenes: Scenes) -> None:
    text = " ".join(chain.from_iterable(scenes.captions)).lower()
    for words in (KIND, COLOUR, SIZE, TEXTURE, PLACE, RELATION):
        assert set(found(words, text)) == set(words.values())
    assert len({re.sub(r"[^a-z ]", "", word) for word in text.split()}) > 100
    assert plural("box") == "boxes" and plural("rhombus") == "rhombuses" and plural("disc") == "discs"


def shape(**changes: Any) -> Shape:
    settings: dict[str, Any] = {
        "kind": 1,
        "colour": 0,
        "size": 2,
        "texture": 0,
        "place": 4,
        "x": 48.0,
        "y": 48.0,
        "turn": 0.0,
        "shade": 0.0,
    }
    return Shape(**(settings | changes))


def painted(**changes: Any) -> NDArray[np.int64]:
    return paint([shape(**changes)], Background(0, 0), np.random.default_rng(0)).astype(np.int64)


def test_a_shape_is_painted_where_and_how_large_it_should_be() -> None:
    for size, radius in ((0, 8.5), (1, 12.5), (2, 17.0)):
        picture = painted(size=size, x=40.0, y=52.0)
        red = picture[..., 0] - picture[..., 1] > 60
        y, x = np.nonzero(red)
        assert abs(x.mean() - 40) < 1 and abs(y.mean() - 52) < 1
        assert abs(red.sum() - (1.68 * radius) ** 2) < 0.15 * (1.68 * radius) ** 2


def test_kinds_colours_and_textures_look_different() -> None:
    for name, classes in (("kind", KINDS), ("colour", COLOURS), ("texture", TEXTURES)):
        pictures = [painted(**{name: index}) for index in range(len(classes))]
        for index, one in enumerate(pictures):
            for other in pictures[:index]:
                assert np.abs(one - other).max(axis=2).mean() > 1


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_no_shape_is_cut_off_at_the_border(kind: int) -> None:
    for x, y, turn in ((22.0, 22.0, -14.0), (74.0, 74.0, 14.0), (22.0, 74.0, 0.0)):
        picture = painted(kind=kind, x=x, y=y, turn=turn)
        border = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
        # The shadow's last trace may reach the border, the shape may not.
        assert np.abs(border - picture[48, 48]).max() < 12


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0, "seed": 1}, "count is 0"),
        ({"count": 5, "seed": 1, "workers": 0}, "workers is 0"),
        ({"count": 5, "seed": -1}, "seed is -1"),
        ({"count": 5, "seed": 2**32}, "seed is 4294967296"),
        ({"count": 5, "seed": 1, "split": "val"}, "'val'.*train, dev, test"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_scenes(**settings)
