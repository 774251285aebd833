"""The Ray engine: the bytes of the local engine, with workers killed in the middle, and without Ray a clear word."""

import importlib.util
import os
import signal

import numpy as np
import pytest

from tests.audit.array_collection import random_pairs
from truepair.audit.scoring.by_embeddings import score_collection
from truepair.data.formats.embeddings.files import open_embeddings
from truepair.errors import InputError, TruepairError

OPTIONS = {"bank_size": 64, "chunk_rows": 200}
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'truepair[ray]'"
)


@pytest.fixture
def source(tmp_path):
    images, texts = random_pairs(1500, 16, noise=0.2)
    images[33], texts[1234, 2] = 0, np.nan
    np.save(tmp_path / "images.npy", images.astype(np.float16))
    np.save(tmp_path / "texts.npy", texts.astype(np.float16))
    return f"{tmp_path / 'images.npy'},{tmp_path / 'texts.npy'}"


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def killing(collection, folder, times):
    """The collection, whose first reads of rows from 600 on in another process kill that process with signal 9.

    The class is made here so that it travels to the workers by value.
    """
    driver = os.getpid()

    class Killing(type(collection)):
        def read(self, start, stop):
            for turn in range(times):
                if start == 600 and os.getpid() != driver and not (folder / f"killed-{turn}").exists():
                    (folder / f"killed-{turn}").touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().read(start, stop)

    collection.__class__ = Killing
    return collection


@needs_ray
def test_two_workers_write_the_bytes_of_one_process(source, tmp_path, cluster):
    local = score_collection(open_embeddings(source), tmp_path / "local", **OPTIONS)
    told = []
    found = score_collection(
        open_embeddings(source), tmp_path / "ray", engine="ray", workers=2,
        moved=told.append, **OPTIONS,
    )  # fmt: skip
    assert told[0] == 0 and told[-1] == 1500 and len(told) == 9
    np.testing.assert_allclose(found.columns["log_odds"], local.columns["log_odds"], rtol=1e-6, atol=1e-6)
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")
    assert found.unusable.tolist() == [33, 1234]


@needs_ray
def test_a_killed_worker_costs_time_and_no_result(source, tmp_path, cluster):
    score_collection(open_embeddings(source), tmp_path / "local", **OPTIONS)
    collection = killing(open_embeddings(source), tmp_path, 1)
    score_collection(collection, tmp_path / "ray", engine="ray", **OPTIONS)
    assert (tmp_path / "killed-0").exists()
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")


@needs_ray
def test_workers_read_from_a_store_by_themselves_and_may_die_of_it(source, tmp_path, cluster):
    score_collection(open_embeddings(source), tmp_path / "local", **OPTIONS)
    stored = open_embeddings(",".join(f"file://{path}" for path in source.split(",")))
    score_collection(killing(stored, tmp_path, 1), tmp_path / "ray", engine="ray", workers=2, **OPTIONS)
    assert (tmp_path / "killed-0").exists()
    ours, theirs = files_of(tmp_path / "ray"), files_of(tmp_path / "local")
    assert ours.pop("scoring.json") != theirs.pop("scoring.json")  # the fingerprint: a store tells other things
    assert ours == theirs and len(ours) == 9


@needs_ray
def test_errors_of_workers_come_back_as_they_are(source, tmp_path, cluster):
    collection = open_embeddings(source)
    score_collection(collection, tmp_path / "ray", **OPTIONS)
    (tmp_path / "ray" / "chunks" / "000004.safetensors").unlink()
    asked = collection.fingerprint()
    collection.fingerprint = lambda: asked  # the file changes while it is audited
    os.truncate(tmp_path / "images.npy", 20_000)
    with pytest.raises(InputError, match="images.npy: the rows 800 to 999 are not there any more"):
        score_collection(collection, tmp_path / "ray", engine="ray", **OPTIONS)


@needs_ray
def test_a_worker_that_always_dies_ends_with_a_clear_error_and_what_is_scored_stays(
    source, tmp_path, cluster, monkeypatch
):
    monkeypatch.setattr("truepair.cluster.RETRIES", 0)
    collection = killing(open_embeddings(source), tmp_path, 99)
    with pytest.raises(TruepairError, match="died on the rows 600 to 799, in each of 1 attempts"):
        score_collection(collection, tmp_path / "ray", engine="ray", workers=1, **OPTIONS)
    assert (tmp_path / "ray" / "chunks" / "000002.safetensors").exists()
    score_collection(open_embeddings(source), tmp_path / "ray", **OPTIONS)  # the local engine goes on


def test_without_ray_the_error_says_how_to_get_it(source, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install 'truepair\\[ray\\]'"):
        score_collection(open_embeddings(source), tmp_path / "s", engine="ray", **OPTIONS)
