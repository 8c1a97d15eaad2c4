"""The window against a dictionary: every gradient comes out once, summed, and no later than its window ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.gradients.window import GradientWindow

DIM = 2


@st.composite
def histories(draw):
    nid = st.integers(0, 30)
    steps = draw(st.lists(st.lists(nid, unique=True, max_size=10), min_size=1, max_size=20))
    return steps, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def add(window, nids, rng, step):
    """Put in whole numbers, whose sums are exact, and take what is due: (due, added), both nid → gradient."""
    added = put(window, nids, rng, step)
    return as_dictionary(*window.take()), added


def put(window, nids, rng, step):
    grads = rng.integers(-99, 99, (len(nids) + 2, DIM)).astype(np.float32)
    positions = rng.permutation(len(nids) + 2)[: len(nids)]
    window.put(np.array(nids, np.int64), positions, grads, step)
    return dict(zip(nids, grads[positions]))


def as_dictionary(nids, grads):
    assert len(set(nids.tolist())) == len(nids)
    assert grads.shape == (len(nids), DIM) and grads.dtype == np.float32
    return dict(zip(nids.tolist(), grads))


@settings(deadline=None, max_examples=200)
@given(histories(), st.integers(2, 7), st.integers(0, 40))
def test_every_gradient_comes_out_once_and_in_time(history, window_steps, num_rows):
    steps, rng = history
    window = GradientWindow(window_steps, num_rows, DIM)
    waiting: dict[int, tuple[int, np.ndarray]] = {}
    for step, nids in enumerate(steps):
        due, added = add(window, nids, rng, step)
        for nid, grad in due.items():
            expected = waiting.pop(nid)[1] if nid in waiting else np.zeros(DIM)
            np.testing.assert_array_equal(grad, expected + added.pop(nid, 0))
        for nid, grad in added.items():
            assert nid not in waiting  # a row that is touched again does not wait on
            waiting[nid] = step, grad
        assert all(step - since < window_steps - 2 for since, _ in waiting.values())
        assert len(window) == len(waiting) <= num_rows
    for nid, grad in put(window, [1, 2], rng, step + 1).items():  # due, and not taken
        waiting[nid] = step, waiting.get(nid, (0, np.zeros(DIM)))[1] + grad
    rest = as_dictionary(*window.drain())
    assert set(rest) == set(waiting) and len(window) == 0
    for nid, grad in rest.items():
        np.testing.assert_array_equal(grad, waiting[nid][1])


@settings(deadline=None)
@given(histories(), st.integers(3, 7))
def test_with_room_a_gradient_waits_its_window_out(history, window_steps):
    steps, rng = history
    window, since = GradientWindow(window_steps, 8 * 31, DIM), {}
    for step, nids in enumerate(steps):
        due, _ = add(window, nids, rng, step)
        expected = {nid for nid in nids if nid in since} | {
            nid for nid, at in since.items() if step - at >= window_steps - 2
        }
        assert set(due) == expected
        since = {nid: at for nid, at in since.items() if nid not in expected}
        since.update({nid: step for nid in nids if nid not in expected})


@settings(deadline=None)
@given(histories(), st.integers(2, 7), st.integers(0, 40))
def test_a_window_that_is_stored_and_loaded_goes_on_alike(history, window_steps, num_rows):
    steps, rng = history
    window = GradientWindow(window_steps, num_rows, DIM)
    for step, nids in enumerate(steps):
        copy = GradientWindow(window_steps, num_rows, DIM)
        copy.load_state({name: array.copy() for name, array in window.state().items()})
        seed = int(rng.integers(2**32))
        results = [add(each, nids, np.random.default_rng(seed), step)[0] for each in (window, copy)]
        assert list(results[0]) == list(results[1])
        for nid in results[0]:
            np.testing.assert_array_equal(results[0][nid], results[1][nid])


@pytest.mark.parametrize("window_steps, num_rows", [(2, 100), (5, 0)])
def test_nothing_waits_without_a_window_or_without_room(window_steps, num_rows):
    window = GradientWindow(window_steps, num_rows, DIM)
    due, added = add(window, [3, 1, 2], np.random.default_rng(1), 0)
    assert list(due) == [3, 1, 2] and len(window) == 0
