"""A record: one embedding row with its update count, so that both travel in one piece.

Records are float32 [num_rows, dim + 1]. The last column holds the bits of an int32: how many updates the row has
received, which is Adam's step count for that row and the row's version.
"""

from __future__ import annotations

import numba
import numpy as np

from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row


def allocate_records(num_rows: int, dim: int) -> np.ndarray:
    """Records of zeros with count 0, float32 [num_rows, dim + 1]."""
    return np.zeros((num_rows, dim + 1), np.float32)


def rows_of(records: np.ndarray) -> np.ndarray:
    """The embedding rows, a view [num_rows, dim]."""
    return records[:, :-1]


def counts_of(records: np.ndarray) -> np.ndarray:
    """The update counts, a view int32 [num_rows]."""
    return records.view(np.int32)[:, -1]


@numba.njit(cache=True, nogil=True)
def scatter_rows(records, rows, positions, x, counts):
    """x[positions[i]] = row rows[i] of records, counts[positions[i]] = its update count."""
    dim = x.shape[1]
    record_bits = records.view(np.int32)
    for i in range(len(rows)):
        if i + LOOKAHEAD < len(rows):
            prefetch_row(records, rows[i + LOOKAHEAD])
        row, position = rows[i], positions[i]
        source, target = records[row], x[position]
        for d in range(dim):
            target[d] = source[d]
        counts[position] = record_bits[row, dim]


@numba.njit(cache=True, nogil=True)
def pack_gradients(grads, positions, row_ids, packed):
    """packed[i] = gradient grads[positions[i]] followed by the bits of int32 row_ids[i]."""
    dim = grads.shape[1]
    packed_bits = packed.view(np.int32)
    for i in range(len(positions)):
        position = positions[i]
        for d in range(dim):
            packed[i, d] = grads[position, d]
        packed_bits[i, dim] = row_ids[i]
