"""A batch's rows from cache, memory, copies, prefetch and other hosts, against a table whose every state is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.copies.buffer import StalenessBuffer
from glpilot.app.embedding.copies.cache import DeviceCache
from glpilot.app.embedding.copies.hotness import Hotness
from glpilot.app.embedding.copies.reader import RowReader
from glpilot.app.embedding.copies.staleness import StalenessRecord, max_ages
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.embedding.rows.store import Fetch

NUM_NODES, DIM = 40, 3
OFFSETS = np.array([0, 10, 20, 40])  # ranks 0 and 1 are on this host, rank 2 is not
IS_NEAR = np.array([True, True, False])
HOT = np.array([2, 15, 25, 39])


def rows_at(nids, step) -> np.ndarray:
    """Every row changes with every step."""
    return np.stack([nids, np.full(len(nids), step), np.asarray(nids) * 7 + step], axis=1).astype(np.float32)


class StubStore:
    """All ranks' rows as of `step`; counts what is fetched."""

    dim = DIM

    def __init__(self):
        self.step, self.num_fetched = 0, 0

    def start_fetch(self, plan, rows=None):
        rows = np.empty((len(plan), DIM), np.float32) if rows is None else rows
        fetch = Fetch(plan, rows, np.zeros(len(rows), np.int32), [])
        fetch.rows[plan.positions] = rows_at(plan.nids, self.step)
        fetch.counts[plan.positions] = self.step
        self.num_fetched += len(plan)
        return fetch

    def finish_fetch(self, fetch):
        pass


def make_reader(store, max_steps, max_missed, num_rows=200, packs=None, hot=HOT, update_rates=None):
    optimizer = SparseOptimizer("sgd", DIM)
    cache = DeviceCache(NUM_NODES, DIM, optimizer, torch.device("cpu"))
    records = np.concatenate([-rows_at(hot, 0), np.zeros((len(hot), 1), np.float32)], axis=1)
    cache.load(hot, records, np.empty((len(hot), 0), np.float32))
    record = StalenessRecord()
    rates = np.random.default_rng(0).random(NUM_NODES).astype(np.float32) if update_rates is None else update_rates
    buffer = StalenessBuffer(num_rows, DIM, record)
    hotness = Hotness(rates, rates)
    return RowReader(
        store, IS_NEAR, cache, buffer, record, hotness, max_steps, max_missed, torch.device("cpu"), packs
    ), rates


batches = st.lists(st.lists(st.integers(0, NUM_NODES - 1), unique=True, max_size=15), min_size=2, max_size=12)


@settings(deadline=None, max_examples=100)
@given(
    batches,
    st.sampled_from([0, 1, 3, -1]),
    st.sampled_from([0, 1, 4, -1]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 60),
)
def test_rows_are_what_they_were_within_their_bounds(steps, max_steps, max_missed, prefetches, packs, num_rows):
    store = StubStore()
    if 0 in (max_steps, max_missed):
        max_steps = 0  # as choose_techniques turns copies off
    reader, rates = make_reader(store, max_steps, max_missed, num_rows, packs)
    bounds = max_ages(rates, max_steps, max_missed)
    plans = [plan_access(np.array(nids, np.int64), OFFSETS) for nids in steps]
    for step, (nids, plan) in enumerate(zip(steps, plans)):
        store.step = step
        reading = reader.start(plan, step)
        x = reader.finish(reading, step).numpy()
        num_far = 0
        for nid, row in zip(nids, x):
            if nid in HOT:
                np.testing.assert_array_equal(row, -rows_at([nid], 0)[0])
                continue
            age = step - int(row[1])
            np.testing.assert_array_equal(row, rows_at([nid], step - age)[0])
            is_far = nid >= OFFSETS[2]
            assert 0 <= age <= (bounds[nid] if is_far else 0)
            num_far += is_far
        assert reading.num_buffered + reading.num_prefetched + len(reading.fetch.plan) == len(reading.cold)
        hot_grads, cold_grads = reader.gradients(reading, torch.from_numpy(x))
        np.testing.assert_array_equal(hot_grads.numpy(), -rows_at(HOT[reading.hot_slots], 0))
        assert (cold_grads[reading.cold.positions][:, 0] == reading.cold.nids).all()
        if prefetches and max_steps and step + 1 < len(plans):
            reader.start_prefetch(plans[step + 1], step)
            reader.finish_prefetch()


def test_prefetched_rows_are_not_fetched_again():
    store = StubStore()
    reader, _ = make_reader(store, -1, -1, num_rows=0)  # no room for copies
    plans = [plan_access(np.array(nids), OFFSETS) for nids in ([21, 22], [22, 23, 1])]
    reader.finish(reader.start(plans[0], 0), 0)
    reader.start_prefetch(plans[1], 0)
    reader.finish_prefetch()
    assert store.num_fetched == 4
    store.step = 1
    reading = reader.start(plans[1], 1)
    assert reader.finish(reading, 1)[:, 1].tolist() == [0, 0, 1]
    assert reading.num_prefetched == 2 and store.num_fetched == 5  # the row of this host


def test_a_row_beyond_its_bound_is_a_fault(monkeypatch):
    """A buffer that serves what it must not is found out by the reader, which knows the bounds itself."""
    store = StubStore()
    reader, _ = make_reader(store, 2, -1)
    push = StalenessBuffer.push
    monkeypatch.setattr(
        StalenessBuffer, "push", lambda buffer, *arguments: push(buffer, *arguments[:5], arguments[5] + 1, arguments[6])
    )
    plan = plan_access(np.array([30]), OFFSETS)
    for step in (0, 2):
        reader.finish(reader.start(plan, step), step)
    with pytest.raises(AssertionError, match="staler than its bound"):
        reader.start(plan, 3)
