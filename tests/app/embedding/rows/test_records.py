"""Rows travel with their update counts and gradients with their row numbers, every bit of them."""

from __future__ import annotations

import numpy as np
import pytest

from glpilot.app.embedding.rows.records import allocate_records, counts_of, pack_gradients, rows_of, scatter_rows

# Counts and row numbers whose bits, read as floats, are denormal, signed zero, infinite or not a number.
SHARP_INTEGERS = np.array(
    [0, 1, 2, 2**23 - 1, 2**23, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 2**31 - 1, -(2**31), -1], np.int64
).astype(np.int32)
# Floats of which an arithmetic copy would lose something.
SHARP_FLOATS = np.array([0x7F800001, 0x7FC12345, 0xFFC00001, 0x80000000, 0x00000001, 0x7F800000], np.uint32).view(
    np.float32
)


def bits(array: np.ndarray) -> list:
    return np.ascontiguousarray(array).view(np.int32).tolist()


@pytest.mark.parametrize("num_rows, dim", [(0, 1), (0, 4), (1, 1), (5, 3), (4, 64)])
def test_new_records_are_zero(num_rows, dim):
    records = allocate_records(num_rows, dim)
    assert records.shape == (num_rows, dim + 1) and records.dtype == np.float32
    assert rows_of(records).shape == (num_rows, dim) and counts_of(records).shape == (num_rows,)
    assert not records.any() and not counts_of(records).any() and counts_of(records).dtype == np.int32


def test_rows_and_counts_are_views_that_do_not_overlap():
    records = allocate_records(3, 2)
    rows_of(records)[1] = [1.5, -2.5]
    counts_of(records)[1] = 2**31 - 1
    counts_of(records)[2] += 1
    assert rows_of(records).tolist() == [[0, 0], [1.5, -2.5], [0, 0]]
    assert counts_of(records).tolist() == [0, 2**31 - 1, 1]


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_scatter_keeps_every_bit(dim):
    num_rows = len(SHARP_INTEGERS)
    records = allocate_records(num_rows, dim)
    rows_of(records)[...] = np.resize(SHARP_FLOATS, (num_rows, dim))
    counts_of(records)[...] = SHARP_INTEGERS
    rng = np.random.default_rng(dim)
    rows = rng.permutation(num_rows)[:-2].astype(np.int32)
    positions = rng.permutation(num_rows + 3)[: len(rows)]
    x, counts = np.full((num_rows + 3, dim), 7, np.float32), np.full(num_rows + 3, 7, np.int32)
    scatter_rows(records, rows, positions, x, counts)
    for row, position in zip(rows, positions):
        assert bits(x[position]) == bits(rows_of(records)[row]) and counts[position] == SHARP_INTEGERS[row]
    untouched = np.setdiff1d(np.arange(num_rows + 3), positions)
    assert (x[untouched] == 7).all() and (counts[untouched] == 7).all() and len(untouched) == 5


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_pack_keeps_every_bit(dim):
    num_entries = len(SHARP_INTEGERS)
    grads = np.resize(SHARP_FLOATS, (num_entries + 4, dim))
    positions = np.random.default_rng(dim).permutation(num_entries + 4)[:num_entries]
    packed = np.empty((num_entries, dim + 1), np.float32)
    pack_gradients(grads, positions, SHARP_INTEGERS, packed)
    assert bits(packed[:, :dim]) == bits(grads[positions])
    assert packed.view(np.int32)[:, dim].tolist() == SHARP_INTEGERS.tolist()


def test_nothing_to_scatter_or_pack():
    none, no_positions = np.empty(0, np.int32), np.empty(0, np.int64)
    scatter_rows(allocate_records(0, 3), none, no_positions, np.empty((0, 3), np.float32), np.empty(0, np.int32))
    pack_gradients(np.empty((0, 3), np.float32), no_positions, none, np.empty((0, 4), np.float32))
