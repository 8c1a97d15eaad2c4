"""Sum the gradients of the same row, before any optimizer sees them: its update is not linear."""
from __future__ import annotations

from typing import Iterable, NamedTuple

import numba
import numpy as np


class Segment(NamedTuple):
    """Row gradients: values[positions[i], :dim] belongs to row row_ids[i].

    Attributes:
        row_ids: integers [num_entries]: numbers of rows at their owner, slots of the device cache, or nids.
        positions: integers [num_entries].
        values: float32 [any, dim or more]; columns beyond `dim` are ignored.
    """

    row_ids: np.ndarray
    positions: np.ndarray
    values: np.ndarray

    def select(self, chosen: np.ndarray) -> Segment:
        """The entries that a bool [num_entries] marks."""
        return Segment(self.row_ids[chosen], self.positions[chosen], self.values)


class Aggregator:
    """Sums segments into one gradient per row. Keeps a slot per row, so that a step costs what it touches."""

    def __init__(self, num_rows: int, dim: int):
        self._slot_of_row = np.full(num_rows, -1, np.int32)
        self._dim = dim

    def sum(self, segments: Iterable[Segment]) -> tuple[np.ndarray, np.ndarray]:
        """Sum all segments, in their order.

        Returns:
            int32 [num_touched] distinct row ids in the order of first appearance, and float32 [num_touched, dim].
        """
        segments = list(segments)
        capacity = min(sum(len(segment.row_ids) for segment in segments), len(self._slot_of_row))
        row_ids = np.empty(capacity, np.int32)
        sums = np.empty((capacity, self._dim), np.float32)
        num_touched = 0
        for segment in segments:
            num_touched = _add_segment(*segment, self._slot_of_row, row_ids, sums, num_touched)
        row_ids = row_ids[:num_touched]
        self._slot_of_row[row_ids] = -1
        return row_ids, sums[:num_touched]


@numba.njit(cache=True, nogil=True)
def _add_segment(segment_ids, positions, values, slot_of_row, row_ids, sums, num_touched):
    dim = sums.shape[1]
    for i in range(len(segment_ids)):
        row, position = segment_ids[i], positions[i]
        slot = slot_of_row[row]
        if slot < 0:
            slot_of_row[row] = num_touched
            row_ids[num_touched] = row
            for d in range(dim):
                sums[num_touched, d] = values[position, d]
            num_touched += 1
        else:
            for d in range(dim):
                sums[slot, d] += values[position, d]
    return num_touched
