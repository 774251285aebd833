"""Segments of largest sum, against all segments there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truepair.audit.crawl_faults.segments import best_segment, high_segments, met_segment


@given(st.lists(st.integers(-5, 5), max_size=14))
def test_the_best_segment_is_the_best_of_all(values):
    start, stop, total = best_segment(np.array(values, dtype=float))
    sums = [sum(values[i:j]) for i in range(len(values) + 1) for j in range(i, len(values) + 1)]
    assert total == max(sums, default=0) == sum(values[start:stop])
    if total:
        assert values[start] > 0 and values[stop - 1] > 0


def test_several_segments_are_found_in_order():
    values = np.full(100, -2.0)
    values[10:30], values[50:90], values[95:97] = 1, 0.5, 3
    assert high_segments(values, least_sum=5, least_length=10) == [(10, 30), (50, 90)]
    assert high_segments(values, least_sum=25, least_length=10) == []
    assert high_segments(values[:0], least_sum=1, least_length=1) == []


def test_a_short_segment_does_not_hide_its_neighbours():
    values = np.array([1.0] * 20 + [-30] + [50] + [-60] + [1.0] * 20)
    assert high_segments(values, least_sum=10, least_length=5) == [(0, 20), (23, 43)]


@pytest.mark.parametrize("seed", range(3))
def test_noise_alone_has_none(seed):
    values = 0.3 - np.random.default_rng(seed).binomial(1, 0.6, 5000)
    assert high_segments(values, least_sum=5, least_length=20) == []


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=14), st.data())
def test_a_segment_meets_the_places_asked_for_or_there_is_none(values, data):
    first = data.draw(st.integers(0, len(values) - 1))
    last = data.draw(st.integers(first + 1, len(values)))
    start, stop = met_segment(np.array(values, dtype=float), first, last)
    if max(values[first:last]) > 0:
        assert start < last and stop > first and sum(values[start:stop]) > 0
    best = best_segment(np.array(values, dtype=float))[:2]
    if best[0] < last and best[1] > first and best[1] > best[0]:
        assert (start, stop) == best


def test_a_better_segment_beside_is_left_to_itself():
    values = np.full(60, -1.0)
    values[10:15] = values[20:50] = 1
    assert met_segment(values, 8, 16) == (10, 15)
    assert met_segment(values, 10, 21) == (20, 50)
    assert met_segment(values, 52, 60) == (0, 0)
