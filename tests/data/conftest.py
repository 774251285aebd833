"""Where the labelled real data lie, and a cache folder that is the tests' own."""

import os
from pathlib import Path

import pytest


def real_data(name: str) -> Path:
    root = Path(os.environ.get("TRUEPAIR_DATA", Path(__file__).parents[3] / "shared" / "data"))
    folder = root / name
    if not folder.is_dir():
        pytest.skip(f"real data not found at {folder}; set TRUEPAIR_DATA to the folder that holds {name}")
    return folder


@pytest.fixture(scope="session")
def wikipedia() -> Path:
    return real_data("wikipedia")


@pytest.fixture(scope="session")
def emoji() -> Path:
    return real_data("emoji")


@pytest.fixture(scope="session")
def fashion() -> Path:
    return real_data("fashion_precomp")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test, new and not yet there."""
    folder = tmp_path_factory.mktemp("home") / "cache"
    monkeypatch.setenv("TRUEPAIR_CACHE", str(folder))
    return folder
