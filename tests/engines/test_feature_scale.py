"""Region features far smaller or larger than 1 are brought there; all others are read as they are."""

from dataclasses import replace

import numpy as np
import pytest

import truepair
from truepair.data.pairs import Images
from truepair.engines.config import GlobalConfig, MLPConfig
from truepair.engines.regions_and_words import scale_of
from truepair.training.setup import Setup

DRAW = np.random.default_rng(0)


def images(features):
    return Images(features.astype(np.float32), tuple(str(row) for row in range(len(features))))


def times(pairs, factor):
    features = np.asarray(pairs.images.features, dtype=np.float32) * np.float32(factor)
    return replace(pairs, images=replace(pairs.images, features=features))


def prepared(pairs, config=None):
    return Setup(model=config or GlobalConfig(width=8, word_width=8)).with_preparation(pairs).preparation


@pytest.mark.parametrize("size", [1e-6, 0.044, 0.099, 0.101, 1.0, 9.9, 10.1, 255.0])
def test_the_scale_is_one_over_the_root_mean_square(size):
    features = size * DRAW.choice([-1.0, 1.0], (30, 4, 6))
    features[7, 2:] = 0  # an image with two regions
    found = scale_of(images(features))
    if 0.1 < size < 10:
        assert found is None
    else:
        assert found == pytest.approx(1 / size, rel=1e-6)


def test_one_vector_an_image_counts_as_one_region():
    assert scale_of(images(0.01 * np.ones((5, 6)))) == pytest.approx(100, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_features_that_say_nothing_have_no_scale(value):
    assert scale_of(images(np.full((5, 3, 6), value))) is None


def test_a_batch_is_of_size_one_and_altered_ones_as_well(tiny):
    pairs, rows = truepair.load(tiny), np.arange(12)
    small = times(pairs, 1 / 512)
    preparation = prepared(small)
    plain = np.asarray(pairs.images.features[rows], dtype=np.float32)
    expected = plain / 512 * preparation.sizes.feature_scale
    assert preparation.images(small.images, rows).features.numpy() == pytest.approx(expected, rel=1e-5)
    altered = preparation.images(small.images, rows, np.random.default_rng(0)).features.numpy()
    assert abs(altered).max() <= abs(expected).max() * 1.0001 and abs(altered).max() > 0.1
    assert prepared(pairs).sizes.feature_scale is None and "feature_scale" not in prepared(pairs).record()


def test_an_engine_that_standardises_its_inputs_is_given_them_as_they_are(tiny):
    small = times(truepair.load(tiny), 1 / 512)
    assert prepared(small, MLPConfig(width=8, hidden_width=8)).sizes.feature_scale is None


def test_training_does_not_depend_on_the_scale_and_the_model_remembers_it(tiny, tmp_path):
    pairs, setup = truepair.load(tiny), Setup(model=GlobalConfig(width=8, word_width=8))
    dev, runs = truepair.load(tiny, split="dev"), {}
    for factor in (2.0**-9, 2.0**-13):
        small, out = times(pairs, factor), tmp_path / str(factor)
        runs[factor] = truepair.fit(
            small, dev=times(dev, factor), method="infonce", setup=setup, out=out, epochs=3, minimum_count=1
        )
    one, other = runs.values()
    assert [line["loss"] for line in one.metrics] == [line["loss"] for line in other.metrics]
    again = truepair.open_run(tmp_path / str(2.0**-9))
    small = times(dev, 2.0**-9)
    scores = [truepair.evaluate(model, small)["rsum"] for model in (one.model, again.model)]
    assert scores[0] == scores[1] == max(line["dev"]["rsum"] for line in one.metrics)
