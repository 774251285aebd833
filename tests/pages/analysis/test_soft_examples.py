"""Soft targets of queries against the equations by hand, which candidates are shown, and t-SNE."""

import math

import numpy as np
import pytest
import torch

from truepair.data.pairs import Images, Pairs, Texts
from truepair.evaluation.subspaces import EncodedParts
from truepair.pages.analysis.embedding import Embedding, embed, neighbours, scatter
from truepair.pages.analysis.soft_examples import directions, example, roles
from truepair.pages.analysis.subject import Rows, Split
from truepair.pages.kit.canvas import png_of

SIMILARITY = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.7, 0.2], [0.0, 0.6, 0.5]], dtype=torch.float64)


def by_hand(queries, other, i, j, *, temperature=0.1, given=0.25):
    """p and y of query i for candidate j; `queries[i][j]` and `other[i][j]` are the two directions' similarities."""

    def softmax(row, column):
        return math.exp(row[column] / temperature) / sum(math.exp(value / temperature) for value in row)

    return softmax(queries[i], j), given * (i == j) + (1 - given) * softmax(other[i], j)


def test_targets_are_the_given_pair_and_the_other_direction():
    ways = directions(SIMILARITY, temperature=0.1, given=0.25)
    rows, columns = SIMILARITY.tolist(), SIMILARITY.T.tolist()
    for kind, queries, other in (("image", rows, columns), ("text", columns, rows)):
        for i in range(3):
            for j in range(3):
                probability, target = by_hand(queries, other, i, j)
                assert float(ways[kind].probability[i, j]) == pytest.approx(probability)
                assert float(ways[kind].target[i, j]) == pytest.approx(target)
                assert float(ways[kind].similarity[i, j]) == queries[i][j]


def test_an_example_has_the_numbers_and_the_rows_of_its_query():
    ways = directions(SIMILARITY, temperature=0.1, given=0.25)
    rows = Rows(np.array([10, 20, 30]), np.array([11, 21, 31]))
    found = example("text", 1, ways["text"], rows)
    assert (found.query, found.row) == ("text", 21)
    assert [(one.role, one.row) for one in found.candidates] == [("match", 20), ("hardest 1", 10), ("hardest 2", 30)]
    probability, target = by_hand(SIMILARITY.T.tolist(), SIMILARITY.tolist(), 1, 0)
    hardest = found.candidates[1]
    assert (hardest.similarity, hardest.probability, hardest.target) == (
        0.8, pytest.approx(probability), pytest.approx(target),
    )  # fmt: skip


def test_candidates_shown_are_the_match_the_hardest_and_the_top_tenth():
    similarity = torch.arange(101, dtype=torch.float64)
    shown = roles(similarity, 50)
    assert shown == [
        ("match", 50), ("hardest 1", 100), ("hardest 2", 99), ("hardest 3", 98), ("top 10 %", 91),
    ]  # fmt: skip
    assert [role for role, _ in roles(similarity[:20], 3)] == ["match", "hardest 1", "hardest 2", "hardest 3"]
    assert roles(similarity[:2], 0) == [("match", 0), ("hardest 1", 1)]


def some_split(count=30, shift=40.0):
    """Invariant parts in one place, exclusive ones far from it and from each other."""
    generator = torch.Generator().manual_seed(0)
    image, text = torch.randn(2, 3, count, 4, generator=generator)
    image[2, :, 0] += shift
    text[2, :, 1] += shift
    pairs = Pairs(
        Images(np.zeros((count, 3), dtype=np.float32), tuple(map(str, range(count)))),
        Texts(("a",) * count, tuple(map(str, range(count)))),
        image_index=np.arange(count),
        text_index=np.arange(count),
    )
    return Split(pairs, EncodedParts(*image), EncodedParts(*text))


def test_neighbours_and_plane_show_which_subspaces_are_apart():
    found = embed(some_split(), seed=0)
    assert {name: len(points) for name, points in found.points.items()} == dict.fromkeys(
        ("V_S", "V_X", "T_S", "T_X"), 30
    )
    for name in ("V_X", "T_X"):
        assert found.neighbours[name][name] == 1
    assert 0.3 < found.neighbours["V_S"]["T_S"] < 0.7
    assert all(sum(shares.values()) == pytest.approx(1) for shares in found.neighbours.values())
    middles = {name: points.mean(axis=0) for name, points in found.points.items()}
    near = np.linalg.norm(middles["V_S"] - middles["T_S"])
    assert near < 0.3 * min(np.linalg.norm(middles["V_S"] - middles[name]) for name in ("V_X", "T_X"))


def test_the_same_seed_gives_the_same_plane_and_another_draws_other_pairs():
    one, again = (embed(some_split(), seed=4, most=20) for _ in range(2))
    other = embed(some_split(), seed=5, most=20)
    assert one.pairs == 20
    for name, points in one.points.items():
        np.testing.assert_array_equal(points, again.points[name])
        assert not np.array_equal(points, other.points[name])
    assert png_of(scatter(one)) == png_of(scatter(again)) != png_of(scatter(other))


def test_two_pairs_are_enough_for_a_plane():
    found = embed(some_split(2), seed=0)
    assert isinstance(found, Embedding) and png_of(scatter(found)).startswith(b"\x89PNG")


def test_neighbours_leave_the_row_itself_out():
    rows = np.array([[0.0], [100.0], [0.5], [100.5]])  # each one's nearest is in the other block
    shares = neighbours(np.repeat(rows, 1, axis=0), ["a", "b"])
    assert shares["a"]["a"] == pytest.approx(1 / 3)  # three neighbours: two of the other block, one of its own
