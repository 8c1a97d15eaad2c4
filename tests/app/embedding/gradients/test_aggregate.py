"""Gradients of the same row are summed, in the order of their segments, against a dictionary as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.rows.segment import Segment


@st.composite
def segment_lists(draw):
    """(num_rows, dim, own, others): own rows distinct, others with duplicates, values wider than dim, some empty."""
    num_rows, dim = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    own_ids = rng.permutation(num_rows)[: draw(st.integers(0, num_rows))]
    segments = []
    for num_entries in [None, *draw(st.lists(st.integers(0, 15), max_size=4))]:
        row_ids = own_ids if num_entries is None else rng.integers(0, num_rows, num_entries)
        values = rng.standard_normal((len(row_ids) + 2, dim + draw(st.integers(0, 2)))).astype(np.float32)
        segments.append(Segment(row_ids.astype(np.int32), rng.permutation(len(row_ids) + 2)[: len(row_ids)], values))
    return num_rows, dim, segments[0], segments[1:]


def sum_with_dictionary(segments, dim: int) -> dict[int, np.ndarray]:
    sums: dict[int, np.ndarray] = {}
    for segment in segments:
        for row_id, position in zip(segment.row_ids.tolist(), segment.positions):
            value = segment.values[position, :dim]
            sums[row_id] = sums[row_id] + value if row_id in sums else value
    return sums


def assert_sums(aggregator, own, others, dim):
    expected = sum_with_dictionary([own, *others], dim)
    own = own._replace(values=own.values.copy())  # is changed in place
    summed = aggregator.sum(own, others)
    row_ids = [row_id for part in summed for row_id in part.row_ids.tolist()]
    assert row_ids == list(expected)  # distinct, in the order of first appearance
    for part in summed:
        for row_id, position in zip(part.row_ids.tolist(), part.positions):
            assert part.values[position, :dim].tobytes() == expected[row_id].tobytes()


@settings(deadline=None)
@given(segment_lists())
def test_sums_are_those_of_a_dictionary(case):
    num_rows, dim, own, others = case
    assert_sums(Aggregator(num_rows, dim), own, others, dim)


@settings(deadline=None)
@given(segment_lists(), st.integers(0, 3))
def test_nothing_stays_from_the_step_before(case, num_before):
    num_rows, dim, own, others = case
    aggregator = Aggregator(num_rows, dim)
    for _ in range(num_before):
        aggregator.sum(own._replace(values=own.values.copy()), others[::-1])
    assert_sums(aggregator, own, others, dim)


def empty_segment(dim):
    return Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, dim), np.float32))


@pytest.mark.parametrize("num_rows", [0, 5])
@pytest.mark.parametrize("others", [[], [empty_segment(3)]])
def test_nothing_to_sum(num_rows, others):
    assert [len(part.row_ids) for part in Aggregator(num_rows, 3).sum(empty_segment(3), others)] == [0, 0]


def test_others_may_come_from_a_generator():
    segment = Segment(np.array([1, 1], np.int32), np.array([0, 1]), np.ones((2, 2), np.float32))
    _, new = Aggregator(3, 2).sum(empty_segment(2), (segment for _ in range(2)))
    assert new.row_ids.tolist() == [1] and new.values.tolist() == [[4, 4]]


def test_the_values_of_others_are_not_changed():
    own = Segment(np.array([0], np.int32), np.array([0]), np.zeros((1, 2), np.float32))
    values = np.ones((2, 2), np.float32)
    Aggregator(3, 2).sum(own, [Segment(np.array([0, 1], np.int32), np.array([0, 1]), values)])
    assert (values == 1).all() and own.values.tolist() == [[1, 1]]
