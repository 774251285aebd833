"""Vectors that are all but the same: against a full matrix, and among many."""

import numpy as np
import pytest

from truepair.audit.duplicates.images import prepared
from truepair.correspondence import near_vectors


def planted(count, copies, *, width=64, seed=0, close=0.003):
    """Random vectors, the last `copies` of which are near the first ones: 1 − cosine = close."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, width)).astype(np.float32)
    noise = rng.normal(size=(copies, width)) * np.sqrt(2 * close)
    vectors[count - copies :] = vectors[:copies] + noise
    return vectors


@pytest.mark.parametrize("exact", [True, False])
def test_finds_what_a_full_matrix_finds(monkeypatch, exact):
    if not exact:
        monkeypatch.setattr(near_vectors, "EXACT", 10)
    raw = planted(3000, 400)
    vectors = prepared(lambda rows: raw[rows], np.arange(3000), 0.995)
    unit = vectors.unit(np.arange(3000)).astype(np.float64)
    links = {(i, j) for i, j in np.argwhere(unit @ unit.T >= 0.995).tolist() if i < j}
    candidates = near_vectors.by_comparing if exact else near_vectors.by_sorting
    found = near_vectors.checked(vectors, np.arange(3000), candidates(vectors, np.arange(3000), 0))
    found = {tuple(pair) for pair in found.tolist()}
    assert len(links) > 300
    assert found <= links
    assert len(found) >= (1 if exact else 0.95) * len(links)
    classes = near_vectors.near_classes(vectors, np.arange(3000), seed=0)
    assert sum(classes[i] == classes[j] for i, j in links) >= (1 if exact else 0.95) * len(links)


def test_sorting_misses_hardly_any_planted_copy_among_many_images():
    raw = planted(20_000, 1000, close=0.0045)
    vectors = prepared(lambda rows: raw[rows], np.arange(20_000), 0.995)
    first, last = vectors.unit(np.arange(1000)), vectors.unit(np.arange(19_000, 20_000))
    links = np.flatnonzero(np.einsum("nd,nd->n", first, last) >= 0.995)
    candidates = set(map(tuple, near_vectors.by_sorting(vectors, np.arange(20_000), 0).tolist()))
    recall = np.mean([(row, 19_000 + row) in candidates for row in links.tolist()])
    assert len(links) > 600 and recall >= 0.995


def test_many_alike_images_are_one_group_and_cost_no_quadratic_memory():
    rng = np.random.default_rng(0)
    crowd = rng.normal(size=64) + 1e-3 * rng.normal(size=(2500, 64))
    others = rng.normal(size=(500, 64))
    raw = np.concatenate([crowd, others]).astype(np.float32)
    vectors = prepared(lambda rows: raw[rows], np.arange(3000), 0.995, spread=False)
    classes = near_vectors.near_classes(vectors, np.arange(3000), seed=0)
    assert len(set(classes[:2500].tolist())) == 1
    assert len(near_vectors.by_comparing(vectors, np.arange(3000), 0)) <= 32 * 3000
    assert len(set(classes[2500:].tolist()) - set(classes[:2500].tolist())) == 500
