"""Gradients of the same row are summed, in the order of their segments, against a dictionary as the oracle."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.aggregate import Aggregator, Segment


@st.composite
def segment_lists(draw):
    """(num_rows, dim, segments): duplicates within and across segments, values wider than dim, empty segments."""
    num_rows, dim = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    segments = []
    for num_entries in draw(st.lists(st.integers(0, 15), max_size=4)):
        values = rng.standard_normal((num_entries + 2, dim + draw(st.integers(0, 2)))).astype(np.float32)
        row_ids = rng.integers(0, num_rows, num_entries).astype(np.int32)
        segments.append(Segment(row_ids, rng.permutation(num_entries + 2)[:num_entries], values))
    return num_rows, dim, segments


def sum_with_dictionary(segments, dim: int) -> dict[int, np.ndarray]:
    sums: dict[int, np.ndarray] = {}
    for segment in segments:
        for row_id, position in zip(segment.row_ids.tolist(), segment.positions):
            value = segment.values[position, :dim]
            sums[row_id] = sums[row_id] + value if row_id in sums else value
    return sums


def assert_sums(aggregator: Aggregator, segments, dim: int):
    expected = sum_with_dictionary(segments, dim)
    row_ids, grads = aggregator.sum(segments)
    assert row_ids.dtype == np.int32 and grads.dtype == np.float32 and grads.shape == (len(expected), dim)
    assert row_ids.tolist() == list(expected)  # distinct, in the order of first appearance
    for row_id, grad in zip(row_ids, grads):
        assert grad.tobytes() == expected[row_id].tobytes()


@settings(deadline=None)
@given(segment_lists())
def test_sums_are_those_of_a_dictionary(case):
    num_rows, dim, segments = case
    assert_sums(Aggregator(num_rows, dim), segments, dim)


@settings(deadline=None)
@given(segment_lists(), st.integers(0, 3))
def test_nothing_stays_from_the_step_before(case, num_before):
    num_rows, dim, segments = case
    aggregator = Aggregator(num_rows, dim)
    for _ in range(num_before):
        aggregator.sum(segments[::-1])
    assert_sums(aggregator, segments, dim)


@pytest.mark.parametrize("num_rows", [0, 5])
@pytest.mark.parametrize("segments", [
    [], [Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, 3), np.float32))],
])
def test_nothing_to_sum(num_rows, segments):
    row_ids, grads = Aggregator(num_rows, 3).sum(segments)
    assert row_ids.shape == (0,) and grads.shape == (0, 3)


def test_segments_may_come_from_a_generator():
    segment = Segment(np.array([1, 1], np.int32), np.array([0, 1]), np.ones((2, 2), np.float32))
    row_ids, grads = Aggregator(3, 2).sum(segment for _ in range(2))
    assert row_ids.tolist() == [1] and grads.tolist() == [[4, 4]]


def test_the_values_given_are_not_changed():
    values = np.ones((2, 2), np.float32)
    Aggregator(3, 2).sum([Segment(np.array([1, 1], np.int32), np.array([0, 1]), values)])
    assert (values == 1).all()
