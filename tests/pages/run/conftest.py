"""Runs of every method on tiny data."""

import pytest

import truepair
from tests.pages.run.division_runs import METHODS, QUICK, SMALL
from truepair.methods import build_method


@pytest.fixture(scope="session")
def noisy(tiny):
    return truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)


@pytest.fixture(scope="session")
def runs(noisy, tmp_path_factory):
    """A run of every method, trained once."""
    root, made = tmp_path_factory.mktemp("runs"), {}

    def run(name):
        if name not in made:
            method, options = METHODS[name]
            chosen = build_method(method, options)
            made[name] = truepair.fit(noisy, method=chosen, out=root / name, setup=SMALL, **QUICK).path
        return made[name]

    return run
