"""The table split by dimension: columns go out and come back whole, and are updated as whole rows are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.rows import columns
from glpilot.app.embedding.rows.columns import ColumnTable, column_bounds, columns_to_rows, rows_to_columns
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.records import counts_of, rows_of
from glpilot.app.embedding.rows.segment import Segment
from helpers.choices import OPTIMIZERS

pytestmark = pytest.mark.mpi


def make_offsets(communicator) -> np.ndarray:
    """Ranks own 0, 11, 22, … rows, but a lone rank owns some."""
    counts = 11 * np.arange(communicator.size)
    counts[-1] += 5
    return np.concatenate([[0], np.cumsum(counts)])


def own(communicator, offsets, whole):
    return whole[offsets[communicator.rank] : offsets[communicator.rank + 1]].copy()


@pytest.mark.parametrize(
    "dim, num_ranks, expected",
    [
        (8, 4, [0, 2, 4, 6, 8]),
        (7, 3, [0, 2, 4, 7]),
        (2, 4, [0, 0, 1, 1, 2]),
        (5, 1, [0, 5]),
    ],
)
def test_column_bounds(dim, num_ranks, expected):
    assert column_bounds(dim, num_ranks).tolist() == expected


@pytest.mark.parametrize("dim", [1, 3, 7, 64])
@pytest.mark.parametrize("chunk_rows", [4, 1 << 18])
def test_rows_become_columns_and_rows_again(communicator, monkeypatch, dim, chunk_rows):
    monkeypatch.setattr(columns, "CHUNK_ROWS", chunk_rows)
    offsets = make_offsets(communicator)
    whole = np.random.default_rng(1).random((offsets[-1], dim), np.float32)
    bounds = column_bounds(dim, communicator.size)
    first, last = bounds[communicator.rank : communicator.rank + 2]
    mine = rows_to_columns(communicator.world, offsets, bounds, own(communicator, offsets, whole))
    np.testing.assert_array_equal(mine, whole[:, first:last])
    rows = np.zeros_like(own(communicator, offsets, whole))
    columns_to_rows(communicator.world, offsets, bounds, mine, rows)
    np.testing.assert_array_equal(rows, own(communicator, offsets, whole))


@pytest.mark.parametrize("optimizer_name", OPTIMIZERS)
@pytest.mark.parametrize("dim", [1, 6])
def test_columns_are_updated_as_whole_rows_are(communicator, optimizer_name, dim):
    """Against the optimizer on the whole table, through loading, three updates, and storing."""
    rng = np.random.default_rng(2)
    offsets = make_offsets(communicator)
    optimizer = SparseOptimizer(optimizer_name, dim)
    records = rng.random((offsets[-1], dim + 1), np.float32)
    counts_of(records)[...] = rng.integers(1, 9, offsets[-1])
    state = rng.random((offsets[-1], optimizer.state_width), np.float32)
    mine = own(communicator, offsets, records), own(communicator, offsets, state)
    bounds = column_bounds(dim, communicator.size)
    table = ColumnTable(communicator.world, offsets, bounds, optimizer_name)
    aggregator = Aggregator(int(offsets[-1]), table.width)
    table.load(*mine)
    first, last = bounds[communicator.rank : communicator.rank + 2]
    for array in mine:
        array[...] = 0
    for _ in range(3):
        nids = rng.permutation(offsets[-1])[:4]
        np.testing.assert_array_equal(table.gather(nids), rows_of(table.records)[nids])
        gradients = rng.standard_normal((2, 4, dim)).astype(np.float32)
        both = [np.sort(rng.permutation(offsets[-1])[:4]) for _ in range(2)]
        first_batch, second_batch = (
            Segment(nids.astype(np.int32), np.arange(4), gradient[:, first:last].copy())
            for nids, gradient in zip(both, gradients)
        )
        table.update(aggregator.sum(first_batch, [second_batch]), 0.1)
        sums = np.zeros((offsets[-1], dim), np.float32)
        for nids, gradient in zip(both, gradients):
            sums[nids] += gradient
        touched = np.union1d(*both).astype(np.int32)
        optimizer.step(
            torch.from_numpy(records), torch.from_numpy(state), Segment(touched, touched.astype(np.int64), sums), 0.1
        )
    table.store(*mine)
    np.testing.assert_array_equal(counts_of(mine[0]), counts_of(own(communicator, offsets, records)))
    np.testing.assert_allclose(rows_of(mine[0]), rows_of(own(communicator, offsets, records)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine[1], own(communicator, offsets, state), rtol=1e-5, atol=1e-6)
