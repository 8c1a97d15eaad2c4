"""Rows between the ranks of a host, and their sums, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.gradients.aggregate import sum_by_id
from glpilot.app.embedding.gradients.host_exchange import allgather, exchange
from glpilot.app.embedding.rows.segment import Segment


def make_segment(seed, num_rows, dim, base=0):
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.permutation(3 * num_rows + 1)[:num_rows]) + base
    values = rng.integers(-99, 99, (num_rows + 2, dim + 1)).astype(np.float32)
    return Segment(ids, rng.permutation(num_rows + 2)[:num_rows], values)


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_sums_are_those_of_a_dictionary(sizes, dim, seed):
    pieces = [make_segment((seed, index), size, dim, base=2**33) for index, size in enumerate(sizes)]
    expected: dict[int, np.ndarray] = {}
    for piece in pieces:
        for row_id, position in zip(piece.row_ids.tolist(), piece.positions):
            expected[row_id] = expected.get(row_id, 0) + piece.values[position, :dim]
    ids, sums = sum_by_id(pieces, dim)
    assert ids.tolist() == sorted(expected) and sums.shape == (len(expected), dim)
    for row_id, row in zip(ids.tolist(), sums):
        np.testing.assert_array_equal(row, expected[row_id])


def rows_of(segment, dim):
    return [
        (int(row_id), segment.values[position, :dim].tolist())
        for row_id, position in zip(segment.row_ids, segment.positions)
    ]


@pytest.mark.mpi
@pytest.mark.parametrize("dim", [1, 4, 5])
@pytest.mark.parametrize("base", [0, 2**31 - 5, 2**45])
def test_every_rank_gets_what_was_meant_for_it(communicator, dim, base):
    host = communicator.host
    me, size = host.Get_rank(), host.Get_size()

    def message(sender, receiver):
        return [
            make_segment((sender, receiver, piece), (sender + receiver + piece) % 5, dim, base) for piece in range(2)
        ]

    incoming = exchange(host, [message(me, receiver) for receiver in range(size)], dim)
    for sender, pieces in enumerate(incoming):
        expected = [row for piece in message(sender, me) for row in rows_of(piece, dim)]
        assert [row for piece in pieces for row in rows_of(piece, dim)] == expected


@pytest.mark.mpi
def test_every_rank_gets_what_all_have(communicator):
    host = communicator.host
    segments = [make_segment(rank, rank % 3, 4, base=2**40) for rank in range(host.Get_size())]
    mine = segments[host.Get_rank()]
    gathered = allgather(host, mine.row_ids, np.ascontiguousarray(mine.values[mine.positions, :4]))
    assert [rows_of(piece, 4) for piece in gathered] == [rows_of(segment, 4) for segment in segments]
