"""Ranks against the definition written as plain loops, on similarities full of ties."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from truepair.errors import InputError
from truepair.evaluation import UNDESCRIBED, ranks, ranks_from_blocks

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LEVELS = (-torch.inf, -2.0, 0.0, 0.5, 1.0, torch.inf)
"""Few values, all exact in every dtype, so that ties are the rule."""


def naive_ranks(similarity: list[list[float]], image_of_text: list[int]) -> tuple[list[int], list[int]]:
    image_ranks = []
    for i, row in enumerate(similarity):
        own = [row[j] for j, image in enumerate(image_of_text) if image == i]
        wrong = [row[j] for j, image in enumerate(image_of_text) if image != i]
        image_ranks.append(sum(value >= max(own) for value in wrong) if own else -1)
    text_ranks = []
    for j, image in enumerate(image_of_text):
        wrong = [row[j] for i, row in enumerate(similarity) if i != image]
        text_ranks.append(sum(value >= similarity[image][j] for value in wrong))
    return image_ranks, text_ranks


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Any number of texts per image, none included, in any order."""
    images, texts = draw(st.integers(1, 7)), draw(st.integers(1, 12))
    cells = draw(st.lists(st.sampled_from(LEVELS), min_size=images * texts, max_size=images * texts))
    image_of_text = draw(st.lists(st.integers(0, images - 1), min_size=texts, max_size=texts))
    return torch.tensor(cells).reshape(images, texts), torch.tensor(image_of_text)


def random_problem(seed: int, images: int = 40, texts: int = 130) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    similarity = torch.randn(images, texts, generator=generator)
    return similarity, torch.randint(images, (texts,), generator=generator)


def as_lists(found: tuple[Tensor, Tensor]) -> tuple[list[int], list[int]]:
    return found[0].tolist(), found[1].tolist()


@settings(max_examples=200, deadline=None)
@given(problems(), st.sampled_from(FLOATS), st.sampled_from([1, 50, 4096]))
def test_ranks_follow_the_definition(problem: tuple[Tensor, Tensor], dtype: torch.dtype, buffer_bytes: int) -> None:
    similarity, image_of_text = problem
    expected = naive_ranks(similarity.tolist(), image_of_text.tolist())
    found = ranks(similarity.to(dtype), image_of_text, buffer_bytes=buffer_bytes)
    assert as_lists(found) == expected
    assert found[0].dtype == found[1].dtype == torch.int64


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(FLOATS), st.integers(1, 8))
def test_blocks_give_the_ranks_of_the_whole(problem: tuple[Tensor, Tensor], dtype: torch.dtype, rows: int) -> None:
    similarity, image_of_text = problem[0].to(dtype), problem[1]
    whole = ranks(similarity, image_of_text)
    blocks = ranks_from_blocks(lambda: iter(torch.split(similarity, rows)), image_of_text, buffer_bytes=64)
    assert torch.equal(blocks[0], whole[0])
    assert torch.equal(blocks[1], whole[1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_random_similarity(dtype: torch.dtype, seed: int) -> None:
    similarity, image_of_text = random_problem(seed)
    similarity = similarity.to(dtype)
    expected = naive_ranks(similarity.tolist(), image_of_text.tolist())
    assert as_lists(ranks(similarity, image_of_text, buffer_bytes=7 * 4 * 130)) == expected


def test_a_constant_model_ranks_last() -> None:
    image_of_text = torch.arange(6).repeat_interleave(5)
    image_ranks, text_ranks = ranks(torch.full((6, 30), 0.3), image_of_text)
    assert image_ranks.tolist() == [25] * 6
    assert text_ranks.tolist() == [5] * 30


def test_a_perfect_model_ranks_first_and_own_texts_do_not_compete() -> None:
    image_of_text = torch.tensor([0, 0, 0, 1, 2, 2])
    similarity = (image_of_text == torch.arange(3)[:, None]).float()
    assert as_lists(ranks(similarity, image_of_text)) == ([0, 0, 0], [0] * 6)


def test_image_without_text_is_marked_and_still_a_candidate() -> None:
    similarity = torch.tensor([[0.2, 0.1], [0.9, 0.0], [0.5, 0.3]])
    assert as_lists(ranks(similarity, torch.tensor([0, 2]))) == ([0, UNDESCRIBED, 1], [2, 0])


def test_transposed_and_differentiable_similarity() -> None:
    similarity, image_of_text = random_problem(4)
    expected = ranks(similarity, image_of_text)
    found = ranks(similarity.T.contiguous().T.requires_grad_(), image_of_text)
    assert as_lists(found) == as_lists(expected)
    assert not found[0].requires_grad


def test_counts_stay_exact_under_autocast() -> None:
    # bfloat16 counts no further than 256.
    image_of_text = torch.arange(2).repeat_interleave(1500)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        image_ranks, _ = ranks(torch.zeros(2, 3000), image_of_text)
    assert image_ranks.tolist() == [1500, 1500]


def test_counting_in_float64_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rows of more than 2**24 texts take seconds to build; the branch is tested at the size of the others.
    similarity, image_of_text = random_problem(8)
    expected = ranks(similarity, image_of_text)
    module = importlib.import_module("truepair.evaluation.ranks")  # the package's `ranks` is the function
    monkeypatch.setattr(module, "EXACT_IN_FLOAT32", 16)
    assert as_lists(ranks(similarity, image_of_text)) == as_lists(expected)


@pytest.mark.parametrize("where", [(0, 0), (3, 7), (39, 129)])
def test_nan_is_refused_by_place(where: tuple[int, int]) -> None:
    similarity, image_of_text = random_problem(5)
    similarity[where] = torch.nan
    place = rf"similarity\[{where[0]}, {where[1]}\]"
    with pytest.raises(InputError, match=place):
        ranks(similarity, image_of_text, buffer_bytes=4000)
    with pytest.raises(InputError, match=place):
        ranks_from_blocks(lambda: torch.split(similarity, 9), image_of_text)


@pytest.mark.parametrize(
    ("similarity", "image_of_text", "message"),
    [
        (torch.zeros(3), torch.tensor([0, 1, 2]), r"shape \(3,\)"),
        (torch.zeros(3, 4), torch.tensor([0, 1, 2]), "one column per text"),
        (torch.zeros(3, 2), torch.tensor([0, 1, 2]), "one column per text"),
        (torch.zeros(2, 3), torch.tensor([0, 1, 2]), r"image_of_text\[2\] is 2, .* 2 images"),
        (torch.zeros(2, 3), torch.tensor([0, -1, 1]), r"image_of_text\[1\] is -1"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0, 1.0]), "expected int64"),
        (torch.zeros(2, 3, dtype=torch.int64), torch.tensor([0, 1, 1]), "expected floats"),
        (torch.zeros(2, 0), torch.zeros(0, dtype=torch.int64), "at least one text"),
        (torch.zeros(0, 2), torch.tensor([0, 0]), "0 images"),
    ],
)
def test_what_does_not_fit_is_refused(similarity: Tensor, image_of_text: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ranks(similarity, image_of_text)
    with pytest.raises(InputError, match=message):
        ranks_from_blocks(lambda: [similarity], image_of_text)


def test_blocks_that_cannot_be_asked_twice_are_refused() -> None:
    similarity, image_of_text = random_problem(6)
    once: Iterator[Tensor] = iter(torch.split(similarity, 10))
    with pytest.raises(InputError, match="40 images the first time and 0 the second"):
        ranks_from_blocks(lambda: once, image_of_text)


def test_blocks_that_change_are_refused() -> None:
    similarity, image_of_text = random_problem(7)
    dropout = torch.nn.Dropout(0.1)
    with pytest.raises(InputError, match="evaluation mode"):
        ranks_from_blocks(lambda: (dropout(block) for block in torch.split(similarity, 10)), image_of_text)
    with pytest.raises(InputError, match="expected one dtype"):
        ranks_from_blocks(lambda: [similarity[:20], similarity[20:].double()], image_of_text)


def test_blocks_that_round_apart_do_not_count_the_right_pair() -> None:
    similarity = torch.eye(5)
    passes = iter([similarity, similarity * (1 - 1e-6)])
    assert as_lists(ranks_from_blocks(lambda: [next(passes)], torch.arange(5))) == ([0] * 5, [0] * 5)
