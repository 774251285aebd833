"""Regions and words as plain vectors, against plain loops."""

import math

import numpy as np
import pytest
import torch

from truepair.data.batch import ImageBatch, TextBatch, pad_words
from truepair.engines import input_vectors
from truepair.engines.input_vectors import region_vectors, word_vectors


@pytest.mark.parametrize("lengths", [[4, 4, 4], [1, 4, 2]])
def test_statistics_of_the_regions_that_exist(lengths):
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(3, 4, 5, generator=generator)
    for image, length in enumerate(lengths):
        features[image, length:] = 0
    statistics, places = region_vectors(ImageBatch(features, torch.tensor(lengths)))
    expected = []
    for image, length in enumerate(lengths):
        columns = [[float(features[image, region, k]) for region in range(length)] for k in range(5)]
        mean = [sum(column) / length for column in columns]
        square = [sum((x - m) ** 2 for x in column) / length for column, m in zip(columns, mean, strict=True)]
        expected.append([*mean, *map(math.sqrt, square), *map(max, columns), *map(min, columns)])
    np.testing.assert_allclose(statistics.numpy(), expected, atol=1e-6)
    assert torch.equal(places, features.flatten(1))


def test_one_region_is_itself_and_many_have_no_places(monkeypatch):
    features = torch.randn(3, 1, 5)
    (only,) = region_vectors(ImageBatch(features, torch.ones(3, dtype=torch.int64)))
    assert torch.equal(only, features[:, 0])
    monkeypatch.setattr(input_vectors, "MOST_PLACES", 19)
    blocks = region_vectors(ImageBatch(torch.randn(3, 4, 5), torch.full((3,), 4)))
    assert [block.shape for block in blocks] == [(3, 20)]


def test_words_count_once_and_padding_never():
    (found,) = word_vectors(pad_words([[3, 1, 3], [2]]), 5)
    assert found.tolist() == [pytest.approx([0, 0.5**0.5, 0, 0.5**0.5, 0]), [0, 0, 1, 0, 0]]
    vectors = torch.randn(2, 7, dtype=torch.float64)
    (given,) = word_vectors(TextBatch(torch.zeros(2, 1, dtype=torch.int64), torch.ones(2), vectors), 5)
    assert torch.equal(given, vectors.float())
