"""Row gradients reach every replica whole and alike, whatever the way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.gradients.hot_sync import HotSync
from helpers.gradients import EMPTINESS, add_up, draw, sum_of

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]


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
