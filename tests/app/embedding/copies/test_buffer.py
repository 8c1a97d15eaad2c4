"""The staleness-bounded buffer against a dictionary: what it serves was read within the bound, and is that very row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.copies.buffer import StalenessBuffer
from glpilot.app.embedding.copies.staleness import UNBOUNDED_STEPS, StalenessRecord, max_ages

DIM = 3


def row_of(nid: int, step: int) -> np.ndarray:
    """A row that tells whose it is and when it was read."""
    return np.array([nid, step, nid * 1000 + step], np.float32)


class Model:
    """All reads of each nid, the last one last: (step, max_age, update count)."""

    def __init__(self):
        self.reads: dict[int, tuple[int, int, int]] = {}
        self.missed: list[int] = []

    def may_serve(self, nid: int, step: int) -> bool:
        return nid in self.reads and step - self.reads[nid][0] <= self.reads[nid][1]


@st.composite
def histories(draw):
    """Steps, each the distinct nids that are accessed, with bounds and rates of all nids."""
    num_nids = draw(st.integers(1, 40))
    nid = st.integers(0, num_nids - 1)
    steps = draw(st.lists(st.lists(nid, unique=True, max_size=12), min_size=1, max_size=20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ages = rng.choice([0, 1, 2, 5, UNBOUNDED_STEPS], num_nids).astype(np.int32)
    return num_nids, steps, ages, rng.random(num_nids).astype(np.float32)


def replay(num_rows, num_nids, steps, ages, rates, skip=1):
    """Access by access as training does: serve what may be served, read and keep the rest. Yields after each step."""
    record = StalenessRecord()
    buffer, model = StalenessBuffer(num_rows, DIM, record), Model()
    for number, accessed in enumerate(steps):
        step = number * skip
        nids = np.array(accessed, np.int64)
        positions = np.random.default_rng(step).permutation(len(nids))
        x = np.full((len(nids), DIM), -1, np.float32)
        could = buffer.can_serve(nids, step)
        served, served_ages = buffer.pull(nids, positions, step, x)
        np.testing.assert_array_equal(could, served)
        for nid, position, is_served, age in zip(accessed, positions, served, served_ages):
            if is_served:
                assert model.may_serve(nid, step)  # never older than its bound
                assert age == step - model.reads[nid][0]
                np.testing.assert_array_equal(x[position], row_of(nid, model.reads[nid][0]))
            else:
                assert (x[position] == -1).all() and age == 0
        yield buffer, model, record, step, nids, served
        missing = np.flatnonzero(~served)
        rows = np.full((len(nids), DIM), -1, np.float32)
        for nid, position in zip(nids[missing], positions[missing]):
            rows[position] = row_of(nid, step)
            if nid in model.reads:
                model.missed.append(step - model.reads[nid][2])
            model.reads[int(nid)] = (step, int(ages[nid]), step)
        counts = np.full(len(nids), step, np.int32)  # every row is updated once a step
        buffer.push(nids[missing], positions[missing], rows, counts, step, ages[nids[missing]], rates[nids[missing]])
        assert len(buffer) <= num_rows


@settings(deadline=None, max_examples=200)
@given(histories(), st.integers(0, 50), st.integers(1, 3))
def test_what_is_served_was_read_within_its_bound(history, num_rows, skip):
    num_served = 0
    for _, _, record, _, _, served in replay(num_rows, *history, skip=skip):
        num_served += int(served.sum())
        assert record.steps.sum() == num_served


@settings(deadline=None)
@given(histories(), st.integers(1, 3))
def test_with_room_for_all_whatever_may_be_served_is(history, skip):
    for _, model, _, step, nids, served in replay(8 * 40, *history, skip=skip):
        assert served.tolist() == [model.may_serve(int(nid), step) and model.reads[int(nid)][1] > 0 for nid in nids]


@settings(deadline=None)
@given(histories())
def test_missed_updates_are_counted_when_a_row_is_read_again(history):
    num_nids, steps, ages, rates = history
    ages = np.maximum(ages, 1)  # all rows are kept
    for _, model, record, *_ in replay(8 * 40, num_nids, steps, ages, rates):
        expected = np.bincount(model.missed, minlength=len(record.missed_updates))
        np.testing.assert_array_equal(record.missed_updates, expected)


@settings(deadline=None)
@given(histories(), st.integers(1, 50))
def test_a_buffer_that_is_stored_and_loaded_goes_on_alike(history, num_rows):
    num_nids, steps, ages, rates = history
    for buffer, _, _, step, _, _ in replay(num_rows, *history):
        copy = StalenessBuffer(num_rows, DIM, StalenessRecord())
        copy.load_state({name: array.copy() for name, array in buffer.state().items()})
        nids = np.arange(num_nids)
        found = [np.zeros((num_nids, DIM), np.float32) for _ in range(2)]
        results = [each.pull(nids, nids, step, x) for each, x in zip((buffer, copy), found)]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(*found)


def push(buffer, nid, step, max_age, rate):
    nids = np.array([nid])
    buffer.push(
        nids,
        np.zeros(1, int),
        row_of(nid, step)[None],
        np.zeros(1, np.int32),
        step,
        np.array([max_age], np.int32),
        np.array([rate], np.float32),
    )


def holds(buffer, nid, step=0):
    return bool(buffer.can_serve(np.array([nid]), step)[0])


def test_room_goes_to_the_rows_that_save_most_fetches():
    buffer = StalenessBuffer(2, DIM, StalenessRecord())
    push(buffer, 0, 0, max_age=10, rate=0.5)
    push(buffer, 1, 0, max_age=10, rate=0.1)
    push(buffer, 2, 0, max_age=10, rate=0.05)  # worth less than both
    assert [holds(buffer, nid) for nid in range(3)] == [True, True, False]
    push(buffer, 3, 0, max_age=20, rate=0.1)  # worth more than row 1
    assert [holds(buffer, nid) for nid in range(4)] == [True, False, False, True]
    push(buffer, 4, 8, max_age=5, rate=0.3)  # row 0 will save 1 more, row 3 will save 1.2, this one 1.5
    assert [holds(buffer, nid, 8) for nid in range(5)] == [False, False, False, True, True]


def test_a_copy_that_can_serve_no_more_makes_room_for_any():
    buffer = StalenessBuffer(1, DIM, StalenessRecord())
    push(buffer, 0, 0, max_age=3, rate=0.9)
    push(buffer, 1, 3, max_age=9, rate=0.0)
    assert holds(buffer, 1, 3) and not holds(buffer, 0, 3)


def test_rows_beyond_32_bits():
    buffer = StalenessBuffer(100, DIM, StalenessRecord())
    push(buffer, 2**40 + 1, 5, max_age=1, rate=1)
    assert holds(buffer, 2**40 + 1, 6) and not holds(buffer, 1, 6)


@pytest.mark.parametrize(
    "max_steps, max_missed, expected",
    [
        (10, 4, [10, 8, 4, 10]),
        (-1, 4, [UNBOUNDED_STEPS, 8, 4, 400]),
        (10, -1, [10] * 4),
        (0, 5, [0] * 4),
        (7, 0, [0] * 4),
        (-1, -1, [UNBOUNDED_STEPS] * 4),
    ],
)
def test_a_bound_is_the_smaller_of_steps_and_expected_updates(max_steps, max_missed, expected):
    rates = np.array([0, 0.5, 1, 0.01], np.float32)
    assert max_ages(rates, max_steps, max_missed) == pytest.approx(expected, abs=1)
    assert max_ages(rates, max_steps, max_missed).dtype == np.int32
