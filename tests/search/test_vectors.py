"""Search of vectors against a naive sort; the inverted file against the exact one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.search.vectors import DEEP, Exact, InvertedFile, vectors_of


def naive(held, query, k, allowed=None):
    """Rows by falling inner product in float64, equal ones by row."""
    scores = held.astype(np.float64) @ query.astype(np.float64)
    rows = sorted(range(len(held)), key=lambda row: (-scores[row], row))
    return [row for row in rows if allowed is None or allowed[row]][:k]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(1, 3),
    st.integers(100, 2000),
    st.booleans(),
)
def test_exact_search_is_a_sort(seed, count, k, queries, block_bytes, some):
    rng = np.random.default_rng(seed)
    held = rng.integers(-2, 3, (count, 4)).astype(np.float32)  # many equal scores, all exact
    asked = rng.integers(-2, 3, (queries, 4)).astype(np.float32)
    allowed = rng.random(count) < 0.5 if some else None
    for query, found in zip(asked, Exact(held, block_bytes).search(asked, k, allowed), strict=True):
        assert found.rows.tolist() == naive(held, query, k, allowed)
        assert found.scores.tolist() == (held[found.rows] @ query).tolist()


def test_pages_of_any_size_give_one_order():
    rng = np.random.default_rng(3)
    held, query = rng.standard_normal((500, 8)).astype(np.float32), rng.standard_normal((1, 8)).astype(np.float32)
    whole = Exact(held).search(query, 500)[0].rows.tolist()
    assert all(Exact(held).search(query, k)[0].rows.tolist() == whole[:k] for k in (1, 7, 100, 499))


@pytest.fixture(scope="module")
def cells():
    pytest.importorskip("faiss", reason="the extra faiss is not installed: pip install 'truepair[faiss]'")
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 16))
    held = centres[rng.integers(40, size=4000)] + 0.3 * rng.standard_normal((4000, 16))
    return InvertedFile((held / np.linalg.norm(held, axis=1, keepdims=True)).astype(np.float32))


def test_the_inverted_file_finds_nearly_all_of_the_nearest(cells):
    queries = cells.held[::100]
    pairs = zip(cells.search(queries, 10), Exact(cells.held).search(queries, 10), strict=True)
    shared = [len(set(found.rows) & set(exact.rows)) / 10 for found, exact in pairs]
    assert np.mean(shared) > 0.9 and not cells.exact


def test_deep_pages_and_narrow_choices_are_exact(cells):
    query, narrow = cells.held[:1], np.arange(len(cells.held)) % 50 == 0
    exact = Exact(cells.held)
    assert cells.search(query, DEEP + 1)[0].rows.tolist() == exact.search(query, DEEP + 1)[0].rows.tolist()
    assert cells.search(query, 5, narrow)[0].rows.tolist() == exact.search(query, 5, narrow)[0].rows.tolist()
    wide = np.arange(len(cells.held)) % 2 == 0
    assert all(row % 2 == 0 for row in cells.search(query, 20, wide)[0].rows)


def test_a_choice_far_from_the_query_is_found(cells, monkeypatch):
    """A tenth of the vectors, none of which lies in a cell that the first query looks into."""
    monkeypatch.setattr(cells.cells, "nprobe", 3)
    queries = cells.held[:2]
    far = cells.held @ queries[0] < np.quantile(cells.held @ queries[0], 0.1)
    found, exact = cells.search(queries, 24, far), Exact(cells.held).search(queries, 24, far)
    assert found[0].rows.tolist() == exact[0].rows.tolist() and len(found[1].rows) == 24
    assert len(cells.search(queries, 24, np.zeros(len(cells.held), dtype=bool))[0].rows) == 0


def test_few_vectors_are_searched_exactly_unless_asked_otherwise(cells):
    assert vectors_of(cells.held).exact and not vectors_of(cells.held, exact=False).exact
