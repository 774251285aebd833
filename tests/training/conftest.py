"""Pairs that many runs of these tests are trained on."""

import pytest

import truepair


@pytest.fixture
def noisy(tiny):
    return truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)
