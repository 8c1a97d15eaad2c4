"""The traffic model against simulated steps, and its choices against all that could be chosen."""

from __future__ import annotations

import numpy as np
import pytest

from glpilot.app.embedding.copies import traffic
from glpilot.app.embedding.copies.buffer import StalenessBuffer
from glpilot.app.embedding.copies.hotness import Hotness
from glpilot.app.embedding.copies.staleness import StalenessRecord, max_ages
from glpilot.app.embedding.copies.traffic import Layout
from glpilot.app.embedding.gradients.window import GradientWindow

NUM_ROWS, NUM_STEPS = 200, 600
RATES = np.random.default_rng(1).beta(0.5, 3, NUM_ROWS).astype(np.float32)


def steps():
    rng = np.random.default_rng(2)
    for step in range(NUM_STEPS):
        yield step, np.flatnonzero(rng.random(NUM_ROWS) < RATES)


@pytest.mark.parametrize("max_steps, max_missed", [(8, -1), (64, 4), (-1, 1)])
def test_fetches_are_as_many_as_expected(max_steps, max_missed):
    ages = max_ages(RATES, max_steps, max_missed)
    buffer, num_fetched = StalenessBuffer(8 * NUM_ROWS, 1, StalenessRecord()), 0
    for step, nids in steps():
        missing = nids[~buffer.can_serve(nids, step)]
        num_fetched += len(missing)
        rows, counts = np.zeros((len(missing), 1), np.float32), np.zeros(len(missing), np.int32)
        buffer.push(missing, np.arange(len(missing)), rows, counts, step, ages[missing], RATES[missing])
    assert num_fetched / NUM_STEPS == pytest.approx(traffic.fetch_rates(RATES, ages).sum(), rel=0.05)


@pytest.mark.parametrize("window_steps", [2, 4, 16])
def test_gradients_are_sent_as_often_as_expected(window_steps):
    window, num_sent = GradientWindow(window_steps, 8 * NUM_ROWS, 1), 0
    for step, nids in steps():
        window.put(nids, np.arange(len(nids)), np.zeros((len(nids), 1), np.float32), step)
        num_sent += len(window.take()[0])
    assert num_sent / NUM_STEPS == pytest.approx(traffic.send_rates(RATES, window_steps).sum(), rel=0.05)


def test_what_a_cold_row_costs():
    hotness = Hotness(np.array([0.5, 0.5, 0], np.float32), np.array([1, 1, 0], np.float32))
    is_far, layout = np.array([True, False, True]), Layout(2, 100)
    assert traffic.cold_bytes(hotness, is_far, layout, 0, 5, 1) == pytest.approx(
        [100, 0, 0]
    )  # fetched and sent each time
    assert traffic.cold_bytes(hotness, is_far, layout, 10, 2, 1) == pytest.approx([25 + 50, 0, 0])
    assert traffic.cold_bytes(hotness, is_far, layout, 0, 0, 3) == pytest.approx([50 + 50 / 1.5, 0, 0])


@pytest.mark.parametrize("num_touched, expected", [(10, "sparse_allreduce"), (100, "dense_allreduce")])
def test_few_rows_go_sparsely_and_most_densely(num_touched, expected):
    layout = Layout(num_senders=4, record_bytes=4 * 65)
    assert traffic.choose_hot_sync(layout, 100, num_touched) == expected
    assert traffic.hot_sync_bytes("sparse_allreduce", layout, 100, num_touched) == num_touched * (4 * 64 + 8) * 3
    assert traffic.hot_sync_bytes("dense_allreduce", layout, 100, num_touched) == 100 * 4 * 65 * 2 * 3 / 4


def test_as_many_rows_are_hot_as_move_the_fewest_bytes():
    rng = np.random.default_rng(3)
    layout = Layout(num_senders=3, record_bytes=40)
    update_rates = rng.random(50).astype(np.float32)
    saved, touched = 400 * rng.random(50) * update_rates, 3.0 * update_rates
    limit = 40
    order = np.argsort(-update_rates, kind="stable")
    moved = []
    for num_hot in range(limit + 1):
        hot = order[:num_hot]
        by_kind = [
            3 * traffic.hot_sync_bytes(kind, layout, num_hot, touched[hot].sum() / 3)
            for kind in ("sparse_allreduce", "dense_allreduce")
        ]
        moved.append(saved.sum() - saved[hot].sum() + min(by_kind))
    chosen = traffic.choose_num_hot(saved, touched, update_rates, layout, limit)
    assert chosen == int(np.argmin(moved)) and chosen > 0
    assert traffic.choose_num_hot(saved * 0, touched, update_rates, layout, limit) == 0
