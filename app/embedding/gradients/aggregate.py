"""Sum the gradients of the same row, before any optimizer sees them: its update is not linear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numba
import numpy as np
import torch

from glpilot.app.embedding.rows.segment import DeviceSegment, Segment


class Aggregator:
    """Sums segments into one gradient per row. Keeps a slot per row, so that a step costs what it touches."""

    def __init__(self, num_rows: int, dim: int):
        self._slot_of_row = np.full(num_rows, -1, np.int32)
        self._dim = dim

    def sum(self, own: Segment, others: Iterable[Segment]) -> list[Segment]:
        """Add up gradients: first those of `own`, then the others in their order.

        Args:
            own: of distinct rows; its values are changed in place, since copying them would take longer than the sums.

        Returns:
            `own`, and the sums of all rows that are not in it; no row is in both.
        """
        others = list(others)
        capacity = min(sum(len(segment.row_ids) for segment in others), len(self._slot_of_row))
        row_ids = np.empty(capacity, np.int32)
        sums = np.empty((capacity, self._dim), np.float32)
        self._slot_of_row[own.row_ids] = np.arange(len(own.row_ids), dtype=np.int32)
        num_new = 0
        for segment in others:
            num_new = _add_segment(*segment, self._slot_of_row, *own, row_ids, sums, num_new)
        row_ids = row_ids[:num_new]
        self._slot_of_row[own.row_ids] = -1
        self._slot_of_row[row_ids] = -1
        return [own, Segment(row_ids, np.arange(num_new), sums[:num_new])]


def sum_by_id(pieces: Sequence[Segment], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum rows with equal ids, in the order of the pieces.

    Returns:
        int64 [num_distinct] ids, ascending, and float32 [num_distinct, dim] sums.
    """
    ids = np.concatenate([np.empty(0, np.int64), *(piece.row_ids for piece in pieces)]).astype(np.int64)
    values = np.empty((len(ids), dim), np.float32)
    start = 0
    for piece in pieces:
        stop = start + len(piece.row_ids)
        values[start:stop] = piece.values[piece.positions, :dim]
        start = stop
    order = np.argsort(ids, kind="stable")
    is_first = np.diff(ids[order], prepend=-1) != 0
    sums = np.empty((np.count_nonzero(is_first), dim), np.float32)
    _sum_runs(order, is_first, values, sums)
    return ids[order][is_first], sums


def sum_on_device(segments: Sequence[Segment], device: torch.device) -> DeviceSegment:
    """The same sums as Aggregator's in torch operations; row ids ascending.

    Segments are added one after the other. The ids of one are distinct, so no two additions meet and the result
    does not depend on the order in which a GPU makes them.
    """
    ids = [torch.as_tensor(segment.row_ids, device=device).long() for segment in segments]
    values = [
        torch.as_tensor(segment.values, device=device)[torch.as_tensor(segment.positions, device=device).long()]
        for segment in segments
    ]
    row_ids, inverse = torch.unique(torch.cat(ids), return_inverse=True)
    sums = torch.zeros((len(row_ids), values[0].shape[1]), device=device)
    for where, value in zip(inverse.split([len(part) for part in ids]), values):
        sums[where] += value
    return DeviceSegment(row_ids.int(), torch.arange(len(row_ids), device=device), sums)


@numba.njit(cache=True, nogil=True)
def _add_segment(
    segment_ids, positions, values, slot_of_row, own_ids, own_positions, own_values, new_ids, new_sums, num_new
):
    dim, num_own = new_sums.shape[1], len(own_ids)
    for i in range(len(segment_ids)):
        row, position = segment_ids[i], positions[i]
        slot = slot_of_row[row]
        if slot < 0:
            slot_of_row[row] = num_own + num_new
            new_ids[num_new] = row
            for d in range(dim):
                new_sums[num_new, d] = values[position, d]
            num_new += 1
        elif slot < num_own:
            where = own_positions[slot]
            for d in range(dim):
                own_values[where, d] += values[position, d]
        else:
            for d in range(dim):
                new_sums[slot - num_own, d] += values[position, d]
    return num_new


@numba.njit(cache=True, nogil=True)
def _sum_runs(order, is_first, values, sums):
    dim = sums.shape[1]
    run = -1
    for i in range(len(order)):
        if is_first[i]:
            run += 1
            for d in range(dim):
                sums[run, d] = values[order[i], d]
        else:
            for d in range(dim):
                sums[run, d] += values[order[i], d]
