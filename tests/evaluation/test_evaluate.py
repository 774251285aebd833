"""`evaluate`: whole and in blocks, at once and in folds, give the figures of the full similarity matrix."""

import numpy as np
import pytest
import torch

import truepair
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError
from truepair.evaluation import evaluate, fold_recall, recall
from truepair.evaluation import evaluate as public
from truepair.evaluation.evaluate import evaluate as evaluate_itself

# The module is hidden behind the function of the same name.
MODULE = evaluate_itself.__globals__


class GivenModel:
    """A model whose similarity is given; it serves blocks of three rows and counts how often it is asked."""

    def __init__(self, similarity):
        self.whole = similarity
        self.passes = 0

    def similarity_blocks(self, pairs, image_rows, text_rows):
        model = self

        class Blocks:
            def __iter__(self):
                model.passes += 1
                part = model.whole[torch.from_numpy(image_rows)][:, torch.from_numpy(text_rows)]
                return iter(part.split(3))

        return Blocks()


def pairs_of(images, per_image):
    count = images * per_image
    return Pairs(
        Images(np.zeros((images, 1, 2), np.float32), tuple(map(str, range(images)))),
        Texts(tuple(f"caption {i}" for i in range(count)), tuple(map(str, range(count)))),
        image_index=np.repeat(np.arange(images), per_image),
        text_index=np.arange(count),
        name="given",
    )


@pytest.fixture
def problem():
    similarity = torch.randn(20, 40, generator=torch.Generator().manual_seed(0))
    pairs = pairs_of(20, 2)
    similarity[torch.from_numpy(pairs.image_of_text), torch.arange(40)] += 1
    return similarity, pairs


def test_evaluate_is_recall_of_the_whole_matrix(problem):
    similarity, pairs = problem
    assert evaluate(GivenModel(similarity), pairs) == recall(similarity, pairs.image_of_text)


def test_a_matrix_too_large_to_keep_gives_the_same_figures_in_two_passes(problem, monkeypatch):
    similarity, pairs = problem
    whole, blocks = GivenModel(similarity), GivenModel(similarity)
    expected = evaluate(whole, pairs)
    monkeypatch.setitem(MODULE, "WHOLE_MATRIX_BYTES", 100)
    assert evaluate(blocks, pairs) == expected
    assert (whole.passes, blocks.passes) == (1, 2)


def test_folds_are_those_of_the_whole_matrix(problem):
    similarity, pairs = problem
    assert evaluate(GivenModel(similarity), pairs, folds=5) == pytest.approx(
        fold_recall(similarity, pairs.image_of_text, folds=5)
    )
    with pytest.raises(InputError, match="20 images do not divide"):
        evaluate(GivenModel(similarity), pairs, folds=3)


def test_a_text_without_an_image_is_named(problem):
    similarity, pairs = problem
    with pytest.raises(InputError, match=r"text 3 \('caption 3'\) stands in 0 pairs"):
        evaluate(GivenModel(similarity), pairs.take(np.delete(np.arange(40), 3)))


def test_the_public_name_is_this_function():
    assert truepair.evaluate is public
