"""A cache folder that is the tests' own, object stores, and where the labelled real data lie."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test, new and not yet there."""
    folder = tmp_path_factory.mktemp("home") / "cache"
    monkeypatch.setenv("TRUEPAIR_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = Path(os.environ.get("TRUEPAIR_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (folder / "emoji").is_dir():
        pytest.skip(f"real data not found at {folder}; set TRUEPAIR_DATA to the folder that holds emoji")
    return folder


@pytest.fixture
def store(tmp_path):
    from tests.data.formats.slow_store import slow_store

    return slow_store(tmp_path)


@pytest.fixture
def bucket(tmp_path):
    """Copies a local folder to memory://, and empties it in the end."""
    import fsspec

    memory = fsspec.filesystem("memory")

    def fill(folder):
        memory.put(str(folder), "/bucket", recursive=True)
        return "memory://bucket"

    yield fill
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
