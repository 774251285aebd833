"""Pooling and principal components against naive loops."""

import numpy as np
import pytest

from truepair.data.features.reduction import MOST_IMAGES, check_grid, pooled, principal_components
from truepair.errors import InputError


@pytest.mark.parametrize(("side", "grid"), [(7, 4), (6, 4), (4, 4), (5, 1), (3, 2)])
def test_a_cell_is_the_mean_of_what_it_covers(side, grid):
    features = np.random.default_rng(0).normal(size=(2, side * side, 3)).astype(np.float16)
    found = pooled(features, grid)
    for image in range(2):
        for i in range(grid):
            for j in range(grid):
                rows = [r for r in range(side) if r < (i + 1) * side / grid and r + 1 > i * side / grid]
                columns = [c for c in range(side) if c < (j + 1) * side / grid and c + 1 > j * side / grid]
                cells = [features[image, r * side + c].astype(float) for r in rows for c in columns]
                assert np.allclose(found[image, i * grid + j], np.mean(cells, axis=0), atol=1e-5)


@pytest.mark.parametrize(("regions", "grid", "said"), [(16, 5, "4 x 4"), (12, 2, "no square grid"), (16, 0, "1 to 4")])
def test_grids_that_cannot_be(regions, grid, said):
    with pytest.raises(InputError, match=said):
        check_grid(regions, grid)
    check_grid(16, 4)


def test_principal_components_hold_the_most_variance():
    rng = np.random.default_rng(1)
    features = (rng.normal(size=(40, 4, 6)) @ rng.normal(size=(6, 6)) + 5).astype(np.float32)
    projection = principal_components(features, 2, grid=None, seed=0)
    regions = features.reshape(-1, 6).astype(np.float64)
    centred = regions - regions.mean(0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    found = projection(features).reshape(-1, 2)
    assert projection.kept == pytest.approx(values[:2].sum() / values.sum(), rel=1e-6)
    assert (found.astype(np.float64) ** 2).sum(0) == pytest.approx(values[:2], rel=1e-4)
    assert np.allclose(projection.basis.T @ projection.basis, np.eye(2), atol=1e-6)
    assert (projection.basis[np.abs(projection.basis).argmax(0), [0, 1]] > 0).all()
    coarse = principal_components(features, 2, grid=1, seed=0)
    assert np.allclose(coarse.mean, features.mean((0, 1)), atol=1e-5)


def test_components_of_a_seeded_draw_and_of_too_little():
    features = np.random.default_rng(2).normal(size=(MOST_IMAGES + 50, 1, 3)).astype(np.float16)
    one, same, other = (principal_components(features, 2, grid=None, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.basis, same.basis) and not np.array_equal(one.basis, other.basis)
    for width, said in ((3, "expected 1 to 2"), (2, "needs more than 2 regions")):
        with pytest.raises(InputError, match=said):
            principal_components(features[:2], width, grid=None, seed=0)
