"""Row gradients reach their owners whole, whatever the way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.gradients.cold_sync import ColdSync
from glpilot.app.embedding.rows.plan import plan_access
from helpers.gradients import EMPTINESS, add_up, draw, sum_of

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]


@pytest.mark.parametrize("kind", ["alltoall", "sparse_allreduce"])
@pytest.mark.parametrize("sums_on_host", [True, False])
@pytest.mark.parametrize("dim", [1, 64])
@pytest.mark.parametrize("emptiness", EMPTINESS)
def test_owners_get_the_sum_over_ranks(communicator, kind, sums_on_host, dim, emptiness):
    rank = communicator.rank
    sizes = [17 if owner != 1 else 0 for owner in range(communicator.size)]  # rank 1 owns nothing
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sent = draw(communicator, int(offsets[-1]), dim, emptiness)
    expected, touched = sum_of(sent, offsets[-1], dim)

    counters = Counter()
    sync = ColdSync("rows", kind, offsets, communicator, dim, sums_on_host, counters)
    plan, grads = plan_access(sent[rank][0], offsets), sent[rank][1]
    is_near = plan.owned_by(communicator.is_near)
    far = plan.select(~is_near)
    segments = sync.start(plan.select(is_near), grads, far.packed(), grads[far.positions])()
    row_ids, sums = add_up(Aggregator(sizes[rank], dim), segments, dim)
    start, stop = offsets[rank], offsets[rank + 1]
    np.testing.assert_array_equal(np.sort(row_ids), touched[(touched >= start) & (touched < stop)] - start)
    np.testing.assert_array_equal(sums, expected[row_ids + start])
    before, after = map(communicator.world.allreduce, (counters["due_gradients"], counters["sent_gradients"]))
    assert before == communicator.world.allreduce(len(far)) and after <= before


def test_a_host_sends_a_row_once(communicator):
    """All ranks touch the same row of each owner."""
    offsets = np.arange(communicator.size + 1)
    grads = np.ones((communicator.size, 2), np.float32)
    plan = plan_access(np.arange(communicator.size), offsets)
    counters = Counter()
    sync = ColdSync("rows", "alltoall", offsets, communicator, 2, True, counters)
    is_near = plan.owned_by(communicator.is_near)
    sync.start(plan.select(is_near), grads, plan.select(~is_near), grads)()
    num_sent = communicator.host.allreduce(counters["sent_gradients"])
    assert num_sent == communicator.size - communicator.host.Get_size()


def test_the_traffic_of_a_step(communicator):
    """Bytes that leave this rank, where every rank touches half of the rows of all."""
    size = communicator.size
    offsets = np.arange(size + 1) * 10
    plan = plan_access(np.arange(0, 10 * size, 2), offsets)
    grads = np.ones((10 * size, 3), np.float32)
    is_near = plan.owned_by(communicator.is_near)
    near, far = plan.select(is_near), plan.select(~is_near)
    sent = {}
    for kind in ("alltoall", "sparse_allreduce"):
        counters = Counter()
        ColdSync("rows", kind, offsets, communicator, 3, False, counters).start(near, grads, far, grads)()
        sent[kind] = counters["sparse_sync_bytes"]
    assert sent["alltoall"] == 5 * (size - 1) * 4 * (3 + 1)
    assert sent["sparse_allreduce"] == 5 * (size - 1) * (size - 1) * (4 * 3 + 8)
