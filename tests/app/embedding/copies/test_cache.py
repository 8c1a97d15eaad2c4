"""The device cache against plain rows: no row is lost, none is updated twice, and its state moves along with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.copies.cache import DeviceCache
from glpilot.app.embedding.gradients.aggregate import Aggregator, sum_on_device
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.records import counts_of, rows_of
from glpilot.app.embedding.rows.segment import Segment
from helpers.choices import OPTIMIZERS

NUM_NODES, DIM = 20, 3
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


class Table:
    """A whole table with its state, as one owner has it."""

    def __init__(self, optimizer: SparseOptimizer, rng):
        self.records = np.zeros((NUM_NODES, DIM + 1), np.float32)
        rows_of(self.records)[...] = rng.standard_normal((NUM_NODES, DIM))
        self.state = optimizer.allocate_state(NUM_NODES)

    def update(self, optimizer, nids, grads, lr):
        segment = Segment(nids.astype(np.int32), np.arange(len(nids)), grads)
        optimizer.step(torch.from_numpy(self.records), torch.from_numpy(self.state), segment, lr)


def make_cache(optimizer, device):
    return DeviceCache(NUM_NODES, DIM, optimizer, torch.device(device))


def promote(cache, table, nids):
    """Demote what is hot, then make `nids` hot, as a change of the hot set does."""
    hot, records, state = cache.owned(0, NUM_NODES)
    table.records[hot], table.state[hot] = records, state
    cache.load(nids, table.records[nids], table.state[nids])


hot_sets = st.lists(st.integers(0, NUM_NODES - 1), unique=True, max_size=NUM_NODES).map(
    lambda nids: np.array(sorted(nids), np.int64)
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPTIMIZERS)
@settings(deadline=None, max_examples=30)
@given(changes=st.lists(st.tuples(hot_sets, st.integers(0, 3)), min_size=1, max_size=5), seed=st.integers(0, 2**32 - 1))
def test_rows_go_in_and_out_of_the_cache_as_if_there_were_none(device, name, changes, seed):
    rng = np.random.default_rng(seed)
    optimizer = SparseOptimizer(name, DIM)
    plain = Table(optimizer, np.random.default_rng(seed + 1))
    table, cache = Table(optimizer, np.random.default_rng(seed + 1)), make_cache(optimizer, device)
    for hot, num_steps in changes:
        promote(cache, table, hot)
        for _ in range(num_steps):
            nids = np.flatnonzero(rng.random(NUM_NODES) < 0.5)
            grads = rng.standard_normal((len(nids), DIM)).astype(np.float32)
            plain.update(optimizer, nids, grads.copy(), 0.1)
            slots = cache.slots_of(nids)
            table.update(optimizer, nids[slots < 0], grads[slots < 0], 0.1)
            values = grads if device == "cpu" else torch.from_numpy(grads).to(device)
            cache.update([Segment(slots[slots >= 0], np.flatnonzero(slots >= 0), values)], 0.1)
            where = torch.from_numpy(slots[slots >= 0]).to(device)
            assert np.allclose(cache.rows(where).cpu().numpy(), rows_of(plain.records)[nids[slots >= 0]], atol=1e-5)
    promote(cache, table, np.empty(0, np.int64))
    exact = device == "cpu"
    np.testing.assert_array_equal(counts_of(table.records), counts_of(plain.records))
    np.testing.assert_allclose(rows_of(table.records), rows_of(plain.records), atol=0 if exact else 1e-5)
    np.testing.assert_allclose(table.state, plain.state, atol=0 if exact else 1e-5)


def test_slots_of_rows_that_are_hot_and_of_others():
    cache = make_cache(SparseOptimizer("sgd", DIM), "cpu")
    nids = np.array([3, 7, 9])
    cache.load(nids, np.zeros((3, DIM + 1), np.float32), np.zeros((3, 0), np.float32))
    assert cache.slots_of(np.array([9, 4, 3, 7])).tolist() == [2, -1, 0, 1]
    assert cache.owned(4, 9)[0].tolist() == [7] and cache.owned(0, 3)[0].tolist() == []
    cache.load(np.array([4]), np.zeros((1, DIM + 1), np.float32), np.zeros((1, 0), np.float32))
    assert cache.slots_of(np.array([9, 4, 3, 7])).tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize("device", DEVICES)
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), num_segments=st.integers(1, 4))
def test_sums_on_a_device_are_those_of_the_aggregator(device, seed, num_segments):
    rng = np.random.default_rng(seed)
    segments = []
    for _ in range(num_segments):
        row_ids = np.sort(rng.permutation(12)[: rng.integers(0, 12)]).astype(np.int32)
        values = rng.standard_normal((len(row_ids) + 1, DIM)).astype(np.float32)
        segments.append(Segment(row_ids, rng.permutation(len(row_ids) + 1)[: len(row_ids)], values))
    on_device = [segment._replace(values=torch.from_numpy(segment.values.copy()).to(device)) for segment in segments]
    expected = {}
    for part in Aggregator(12, DIM).sum(segments[0], segments[1:]):
        expected.update(zip(part.row_ids.tolist(), part.values[part.positions]))
    row_ids, positions, sums = sum_on_device(on_device, torch.device(device))
    assert row_ids.tolist() == sorted(expected)
    for row_id, row in zip(row_ids.tolist(), sums[positions].cpu().numpy()):
        np.testing.assert_array_equal(row, expected[row_id])
