"""Each kind of exchange brings rows where it says, and counts what it sends."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from glpilot.app.embedding.gradients.exchange import MAX_ELEMENTS, RowExchange, check_elements
from glpilot.app.embedding.rows.segment import Segment

DIM = 3


def make_exchange(communicator, counters=None):
    return RowExchange("test", communicator, DIM, False, Counter() if counters is None else counters)


def value_of(sender: int, receiver: int) -> float:
    return 10.0 * sender + receiver


@pytest.mark.mpi
@pytest.mark.hosts
def test_alltoall_brings_each_rank_its_rows(communicator):
    """Every rank sends rank r a row for each number below r, but nothing to itself; rank 0 gets nothing at all."""
    rank, size, counters = communicator.rank, communicator.size, Counter()
    outgoing = {
        other: Segment(
            np.arange(other, dtype=np.int32),
            np.zeros(other, np.int64),
            np.full((1, DIM), value_of(rank, other), np.float32),
        )
        for other in range(size)
        if other != rank
    }
    arrived = make_exchange(communicator, counters).alltoall(outgoing)()
    assert sorted(arrived) == ([other for other in range(size) if other != rank] if rank else [])
    for sender, segment in arrived.items():
        assert segment.row_ids.tolist() == list(range(rank))
        assert (segment.values[segment.positions, :DIM] == value_of(sender, rank)).all()
    num_sent = sum(other for other in range(size) if other != rank)
    assert counters["sparse_sync_bytes"] == 4 * (DIM + 1) * num_sent


@pytest.mark.mpi
@pytest.mark.hosts
def test_sparse_allreduce_brings_all_rows_to_all(communicator):
    """Rank r gives r rows, with equal ids on all ranks: nothing is summed."""
    rank, size, counters = communicator.rank, communicator.size, Counter()
    values = torch.full((rank, DIM), float(rank))
    ids, gathered = make_exchange(communicator, counters).sparse_allreduce(np.arange(rank), values, size)()
    assert ids.tolist() == [number for sender in range(size) for number in range(sender)]
    assert gathered[:, 0].tolist() == [float(sender) for sender in range(size) for _ in range(sender)]
    assert counters["sparse_sync_bytes"] == rank * (4 * DIM + 8) * (size - 1)


@pytest.mark.mpi
@pytest.mark.hosts
def test_dense_allreduce_sums(communicator):
    size, counters = communicator.size, Counter()
    sums = make_exchange(communicator, counters).dense_allreduce(torch.full((5, DIM), float(communicator.rank + 1)))()
    assert torch.equal(sums, torch.full((5, DIM), size * (size + 1) / 2))
    assert counters["sparse_sync_bytes"] == int(4 * 5 * DIM * 2 * (size - 1) / size)


def test_more_than_mpi_can_count_is_refused():
    check_elements(MAX_ELEMENTS)
    with pytest.raises(OverflowError, match="lower sampler.batch_size"):
        check_elements(MAX_ELEMENTS + 1)
