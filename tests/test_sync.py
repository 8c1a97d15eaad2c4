"""Row gradients reach their owners whole, and dense gradients and losses are summed, whatever the way."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from glpilot.app.embedding.aggregate import Aggregator
from glpilot.app.embedding.plan import plan_access
from glpilot.app.embedding.sync import DenseSync, RowSync

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("kind", ["alltoall", "sparse_allreduce"])
@pytest.mark.parametrize("dim", [1, 5, 64])
@pytest.mark.parametrize("emptiness", ["none", "some ranks send nothing", "all send nothing"])
def test_owners_get_the_sum_over_ranks(communicator, kind, dim, emptiness):
    rank, size = communicator.rank, communicator.size
    sizes = [17 if owner != 1 else 0 for owner in range(size)]  # rank 1 owns nothing
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    nids_by_rank, grads_by_rank = [], []
    for sender in range(size):  # every rank draws what all send
        rng = np.random.default_rng(sender)
        is_empty = emptiness == "all send nothing" or (emptiness != "none" and sender % 2 == 0)
        nids_by_rank.append(rng.permutation(offsets[-1])[: 0 if is_empty else rng.integers(1, offsets[-1])])
        grads_by_rank.append(rng.integers(-99, 99, (len(nids_by_rank[-1]), dim)).astype(np.float32))
    expected = np.zeros((offsets[-1], dim), np.float32)
    for nids, grads in zip(nids_by_rank, grads_by_rank):
        expected[nids] += grads
    touched = np.unique(np.concatenate(nids_by_rank))

    sync = RowSync(kind, rank, size)
    finish = sync.start(plan_access(nids_by_rank[rank], offsets), grads_by_rank[rank])
    row_ids, sums = Aggregator(sizes[rank], dim).sum(finish())
    start, stop = offsets[rank], offsets[rank + 1]
    np.testing.assert_array_equal(np.sort(row_ids), touched[(touched >= start) & (touched < stop)] - start)
    np.testing.assert_array_equal(sums, expected[row_ids + start])


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
    size = communicator.size
    plan = plan_access(np.arange(0, 10 * size, 2), np.arange(size + 1) * 10)
    num_foreign = 5 * (size - 1)
    assert RowSync("alltoall", communicator.rank, size).num_rows_sent(plan) == num_foreign
    assert RowSync("sparse_allreduce", communicator.rank, size).num_rows_sent(plan) == 5 * size * (size - 1)
