"""What a method sees of all pairs before anything is learned of them."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from truepair.errors import InputError
from truepair.methods import input_vectors
from truepair.methods.input_vectors import InputVectors


class Batches:
    """Pairs in batches of an order of its own, through an engine that gives vectors or has only its encodings."""

    def __init__(self, images, texts, rows, encoded):
        self.images, self.texts, self.rows, self.encoded = images, texts, rows, encoded

    def forward(self, ids):
        images, texts = (torch.from_numpy(side[ids]) for side in (self.images, self.texts))

        class Engine:
            input_vectors = lambda _, a, b: None if self.encoded else ([images[:, :5], images[:, 5:]], [texts])  # noqa: E731
            image_vectors = text_vectors = lambda _, encoded: encoded

        network = type("Network", (), {"engine": Engine(), "images": images, "texts": texts})()
        batch = type("Batch", (), {"ids": torch.from_numpy(ids), "images": None, "texts": None})()
        batch.image_rows = torch.from_numpy(self.rows[ids])
        return type("Forward", (), {"batch": batch, "networks": [network]})()


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("sample", [100, 4096])
def test_vectors_lie_at_their_ids_whatever_the_order(monkeypatch, encoded, sample):
    """Distances are those of the given numbers, each divided by the square root of its standard deviation among the
    first pairs, in units of their spread; what does not vary counts for nothing.
    """
    monkeypatch.setattr(input_vectors, "SAMPLE", sample)
    rng = np.random.default_rng(0)
    images, texts = (
        (rng.normal(size=(400, width)) * np.geomspace(0.1, 10, width)).astype(np.float32) for width in (9, 7)
    )
    texts[:, 2] = 1e4 + 0.02 * rng.normal(size=400)  # twenty roundings of single precision
    rows = rng.permutation(400)
    batches, found = Batches(images, texts, rows, encoded), InputVectors(400, without="--none")
    parts = np.array_split(rng.permutation(400), 9)
    for ids in parts:
        found.add(batches.forward(ids))
    assert np.array_equal(found.image_rows, rows)
    first = np.concatenate(parts[:3] if sample == 100 else parts)
    deviation = [math.sqrt(sum((x - column.mean()) ** 2 for x in column) / len(first)) for column in texts[first].T]
    weights = [0 if k == 2 else each**-0.5 for k, each in enumerate(deviation)]
    side, weighted = found.texts.finished(), texts.astype(float) * weights
    distance = np.linalg.norm(side[:50, None] - side[None, :50], axis=2)
    expected = np.linalg.norm(weighted[:50, None] - weighted[None, :50], axis=2)
    np.testing.assert_allclose(distance, distance.sum() / expected.sum() * expected, atol=1e-3)
    assert np.square(side - side.mean(axis=0)).sum(axis=1).mean() == pytest.approx(1, abs=0.2)
    assert found.images.finished().shape == (400, 9)


def test_a_number_far_beyond_all_others_is_cut_off():
    """1e30 squared is infinite in single precision; of 1e10 all else would be nothing."""
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(300, 8)).astype(np.float32), rng.normal(size=(300, 6)).astype(np.float32)
    usual = found_sides(images, texts)
    for size in (1e30, -1e30, 1e10):
        faulty = images.copy()
        faulty[7, 3] = size
        found = found_sides(faulty, texts)
        assert all(np.isfinite(side).all() for side in found)
        others = np.delete(np.arange(300), 7)
        spreads = [np.delete(side[0], 7, axis=0).std(axis=0).max() for side in (usual, found)]
        assert spreads[1] > 0.1 * spreads[0] and len(np.unique(found[0][others], axis=0)) == 299


def found_sides(images, texts):
    found = InputVectors(len(images), without="--none")
    found.add(Batches(images, texts, np.arange(len(images)), True).forward(np.arange(len(images))))
    return found.sides


def test_more_pairs_than_the_memory_holds_are_refused_before_any_is_kept(monkeypatch):
    monkeypatch.setattr("truepair.device.memory_of", lambda device: 10 * 300 * 14 - 1)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"a linear model of 300 pairs \(--none does without\) needs about 0.0 GB"):
        found_sides(rng.normal(size=(300, 8)).astype(np.float32), rng.normal(size=(300, 6)).astype(np.float32))


def test_wide_vectors_of_few_pairs_need_memory_for_their_principal_axes(monkeypatch):
    monkeypatch.setattr("truepair.device.memory_of", lambda device: 32 * 300 * 2000 - 1)
    rng = np.random.default_rng(0)
    texts = rng.normal(size=(300, 6)).astype(np.float32)
    with pytest.raises(InputError, match="a linear model of 300 pairs"):
        found_sides(rng.normal(size=(300, 2000)).astype(np.float32), texts)
    assert found_sides(rng.normal(size=(300, 1999)).astype(np.float32), texts)[0].shape == (300, 256)


HELD_OUT = """
import numpy as np
from tests.methods.test_input_vectors import Batches
from truepair.correspondence.canonical import CrossFittedCCA
from truepair.methods.input_vectors import InputVectors

rng = np.random.default_rng(0)
shared = rng.normal(size=(600, 12))
images, texts = (
    (shared @ rng.normal(size=(12, 40)) + 3 * rng.normal(size=(600, 40))).astype(np.float32) for _ in range(2)
)
texts[:240] = np.roll(texts[:240], 1, axis=0)
found = InputVectors(600, without="--none")
found.add(Batches(images, texts, np.arange(600), encoded=False).forward(np.arange(600)))
sides = found.images.finished(), found.texts.finished()
models = CrossFittedCCA(*sides, np.arange(600), temperature=0.05, seed=0)
print(models.cleaned(0.4).given.tobytes().hex())
"""


def test_held_out_scores_of_them_do_not_depend_on_the_processor():
    """Kernels of linear algebra add in other orders. A rank that changes by it moves a calibrated weight by a step."""
    found = [
        subprocess.run(
            [sys.executable, "-c", HELD_OUT],
            env={**os.environ, "OPENBLAS_CORETYPE": kernels},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kernels in ("Haswell", "Nehalem")
    ]
    scores = [np.frombuffer(bytes.fromhex(each.strip())) for each in found]
    assert len(scores[0]) == 600 and np.ptp(scores[0]) > 1
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-6)
