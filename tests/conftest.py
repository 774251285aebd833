"""What all tests share: one thread, no deadlines, and where the real data lie."""

import os
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.processes import without_fsync

os.environ.setdefault("TRUEPAIR_ENCODER", "windows")  # the quickest, and for pictures of a few pixels the best
torch.set_num_threads(1)  # the tests run in several processes; threads that wait for each other would slow them down
settings.register_profile("untimed", deadline=None)  # no test is about time, and a busy machine is slow
settings.load_profile("untimed")
without_fsync()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Features of pictures go where everything else of the tests goes, not into the user's cache."""
    os.environ["TRUEPAIR_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def fashion() -> Path:
    """The folder of `fashion_precomp`, or a skip that says where it was looked for."""
    root = Path(os.environ.get("TRUEPAIR_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = root / "fashion_precomp"
    if not folder.is_dir():
        pytest.skip(f"real data not found at {folder}; set TRUEPAIR_DATA to the folder that holds fashion_precomp")
    return folder


@contextmanager
def drawings(count: int):
    """The splits dev and test of `scenes` with so many pictures: 500 each would take most of the time of tests."""
    from truepair.data.formats.scenes.source import COUNTS

    with pytest.MonkeyPatch.context() as patch:
        for split in ("dev", "test"):
            patch.setitem(COUNTS, split, count)
        yield


@pytest.fixture(scope="module")
def few_drawings():
    with drawings(30):
        yield


@pytest.fixture(scope="session")
def cluster():
    """One Ray with two workers for all tests that need one."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # beside other tests a worker would take minutes to import torch
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    yield ray
    ray.shutdown()


WORDS = ("red", "blue", "green", "round", "square", "large", "small", "striped", "plain", "shiny")
MANY_WORDS = (
    *WORDS,
    *["oval", "thin", "thick", "soft", "hard", "old", "new", "warm", "cold", "light", "dark", "long", "short", "rough"],
)


def write_tiny_precomp(
    folder: Path, *, images: dict[str, int] | None = None, words: Sequence[str] = WORDS, seed: int = 0
) -> Path:
    """A small learnable data set in the precomp layout: two captions per image, words tied to feature directions."""
    import numpy as np

    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(len(words), 8))
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (images or {"train": 48, "dev": 16, "test": 16}).items():
        features, captions = np.zeros((count, 3, 8), dtype=np.float16), []
        for image in range(count):
            shown = rng.choice(len(words), size=3, replace=False)
            features[image] = directions[shown] + 0.1 * rng.normal(size=(3, 8))
            captions += [" ".join(words[word] for word in rng.permutation(shown)) for _ in range(2)]
        np.save(folder / f"{split}_ims.npy", features)
        (folder / f"{split}_caps.txt").write_text("\n".join(captions) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny data set, not to be written to."""
    return write_tiny_precomp(tmp_path_factory.mktemp("tiny") / "tiny")
