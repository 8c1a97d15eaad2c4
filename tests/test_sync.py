"""Row gradients reach their owners or every replica whole, and dense gradients and losses are summed, whatever the way.

Values are whole numbers, whose sums are exact in any order.
"""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.dense.allreduce import DenseSync
from glpilot.app.embedding.gradients.cold_sync import ColdSync
from glpilot.app.embedding.gradients.exchange import MAX_ELEMENTS, check_elements
from glpilot.app.embedding.gradients.hot_sync import HotSync

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]

EMPTINESS = ["none", "some ranks send nothing", "all send nothing"]


def draw(communicator, num_rows, dim, emptiness):
    """What all ranks send: distinct rows of each, and their gradients in the same order."""
    sent = []
    for sender in range(communicator.size):
        rng = np.random.default_rng(sender)
        is_empty = emptiness == "all send nothing" or (emptiness != "none" and sender % 2 == 0)
        rows = rng.permutation(num_rows)[: 0 if is_empty else rng.integers(1, num_rows)]
        sent.append((rows, rng.integers(-99, 99, (len(rows), dim)).astype(np.float32)))
    return sent


def sum_of(sent, num_rows, dim):
    total = np.zeros((num_rows, dim), np.float32)
    for rows, grads in sent:
        total[rows] += grads
    return total, np.unique(np.concatenate([rows for rows, _ in sent]))


def add_up(aggregator, segments, dim):
    """Row ids and sums of all segments, as arrays."""
    if not segments:
        return np.empty(0, np.int32), np.empty((0, dim), np.float32)
    summed = aggregator.sum(segments[0], segments[1:])
    return (
        np.concatenate([part.row_ids for part in summed]),
        np.concatenate([part.values[part.positions, :dim] for part in summed]),
    )


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


@pytest.mark.parametrize("kind", ["dense_allreduce", "sparse_allreduce"])
@pytest.mark.parametrize("sums_on_host", [True, False])
@pytest.mark.parametrize("emptiness", EMPTINESS)
def test_replicas_get_the_same_sums_in_the_same_order(communicator, kind, sums_on_host, emptiness):
    num_rows, dim = 30, 5
    sent = draw(communicator, num_rows, dim, emptiness)
    expected, touched = sum_of(sent, num_rows, dim)

    rows, grads = sent[communicator.rank]
    order = np.argsort(rows)
    sync = HotSync(kind, num_rows, communicator, dim, sums_on_host, Counter())
    segments = sync.start(rows[order].astype(np.int32), torch.from_numpy(grads[order]))()
    assert all(len(set(segment.row_ids.tolist())) == len(segment.row_ids) for segment in segments)
    row_ids, sums = add_up(Aggregator(num_rows, dim), segments, dim)
    assert sorted(row_ids.tolist()) == touched.tolist()
    np.testing.assert_array_equal(sums, expected[row_ids])
    assert len(set(communicator.world.allgather(row_ids.tobytes() + sums.tobytes()))) == 1


def test_no_hot_rows_need_no_talk(communicator):
    nothing = np.empty(0, np.int32), torch.empty((0, 4))
    assert HotSync("sparse_allreduce", 0, communicator, 4, True, Counter()).start(*nothing)() == []


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


def test_dense_gradients_and_loss_are_summed(communicator):
    parameters = [torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(4))]
    parameters[0].grad = torch.full((3, 2), float(communicator.rank + 1))
    if communicator.rank == 0:  # the others have none
        parameters[1].grad = torch.ones(4)
    loss = DenseSync(parameters, communicator.size).start(torch.tensor(2.0))()
    total = communicator.size * (communicator.size + 1) / 2
    assert loss == 2.0 * communicator.size
    assert torch.equal(parameters[0].grad, torch.full((3, 2), total))
    assert torch.equal(parameters[1].grad, torch.ones(4))


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


def test_more_than_mpi_can_count_is_refused():
    check_elements(MAX_ELEMENTS)
    with pytest.raises(OverflowError, match="lower sampler.batch_size"):
        check_elements(MAX_ELEMENTS + 1)
