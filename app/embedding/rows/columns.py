"""The table split by dimension (P3: Gandhi and Iyer, OSDI 2021): each rank holds some columns of every row.

No row ever crosses the network in training. For evaluation, checkpoints and export the columns go back into the rows
of their owners, so that files and results look as they do in every other mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from mpi4py import MPI

from glpilot.app.embedding.rows.optimizers.rule import StepSizes
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import RULES, SparseOptimizer
from glpilot.app.embedding.rows.records import allocate_records, counts_of, rows_of, scatter_rows
from glpilot.app.embedding.rows.segment import Segment

CHUNK_ROWS = 1 << 18  # of a message, which bounds what is copied at a time


def column_bounds(dim: int, num_ranks: int) -> np.ndarray:
    """Rank r holds columns bounds[r] … bounds[r + 1] - 1: as even as can be."""
    return dim * np.arange(num_ranks + 1) // num_ranks


class ColumnTable:
    """This rank's columns of all rows, with their optimizer state and the rows' update counts.

    Every rank sees the gradients of all batches on its columns, so each keeps the same counts.

    Attributes:
        records: float32 [num_nodes, width + 1], see records.py.
        state: float32 [num_nodes, …]: the sparse optimizer's, of these columns.
    """

    def __init__(
        self,
        world: MPI.Intracomm,
        offsets: Sequence[int] | np.ndarray,
        bounds: Sequence[int] | np.ndarray,
        optimizer_name: str,
    ):
        """
        Args:
            offsets: [num_ranks + 1]: rank r owns the rows offsets[r] … offsets[r + 1] - 1.
            bounds: [num_ranks + 1]: rank r holds the columns bounds[r] … bounds[r + 1] - 1.
        """
        self._world = world
        self._offsets = np.asarray(offsets, np.int64)
        self._bounds = np.asarray(bounds, np.int64)
        self._dim = int(bounds[-1])
        self.width = int(bounds[world.Get_rank() + 1] - bounds[world.Get_rank()])
        self._optimizer = SparseOptimizer(optimizer_name, self.width)
        self._step_sizes = RULES[optimizer_name].step_sizes  # where the state of a row runs over all ranks' columns
        num_nodes = int(self._offsets[-1])
        self.records = allocate_records(num_nodes, self.width)
        self.state = self._optimizer.allocate_state(num_nodes)

    def load(self, records: np.ndarray, state: np.ndarray) -> None:
        """Collective: take the columns from the rows that each rank owns: records [num_local, dim + 1], state."""
        rows_of(self.records)[...] = self._to_columns(rows_of(records))
        counts_of(self.records)[...] = _allgather(self._world, self._offsets, counts_of(records))
        if self._step_sizes is not None:
            self.state[:, 0] = _allgather(self._world, self._offsets, state[:, 0])
            return
        num_kinds = state.shape[1] // self._dim
        for mine, whole in zip(_by_kind(self.state, num_kinds), _by_kind(state, num_kinds)):
            mine[...] = self._to_columns(whole)

    def store(self, records: np.ndarray, state: np.ndarray) -> None:
        """Collective: put the columns back into the rows that each rank owns."""
        rank = self._world.Get_rank()
        own = slice(self._offsets[rank], self._offsets[rank + 1])
        self._to_rows(rows_of(self.records), rows_of(records))
        counts_of(records)[...] = counts_of(self.records)[own]
        if self._step_sizes is not None:
            state[...] = self.state[own]
            return
        num_kinds = state.shape[1] // self._dim
        for mine, whole in zip(_by_kind(self.state, num_kinds), _by_kind(state, num_kinds)):
            self._to_rows(mine, whole)

    def gather(self, nids: np.ndarray) -> np.ndarray:
        """These columns of rows nids [n]: float32 [n, width]."""
        x = np.empty((len(nids), self.width), np.float32)
        scatter_rows(self.records, nids, np.arange(len(nids)), x, np.empty(len(nids), np.int32))
        return x

    def update(self, summed: Iterable[Segment], lr: float) -> None:
        """Update rows by their summed gradients (row ids are nids), once each.

        Collective where the optimizer has one number of state per row, as row-wise Adagrad: a row's sum of squares runs
        over all ranks' columns.

        Args:
            summed: the same rows in the same order on every rank, each once in all.
        """
        for segment in summed:
            if self._step_sizes is None:
                self._optimizer.step(torch.from_numpy(self.records), torch.from_numpy(self.state), segment, lr)
            else:
                self._update_rowwise(segment, lr, self._step_sizes)

    def _update_rowwise(self, segment: Segment, lr: float, step_sizes_of: StepSizes) -> None:
        grads = segment.values[segment.positions]
        squares = np.einsum("ij,ij->i", grads, grads)
        self._world.Allreduce(MPI.IN_PLACE, squares)
        mean_squares = squares / np.float32(self._dim)
        totals, step_sizes = step_sizes_of(self.state[segment.row_ids, 0], mean_squares, lr)
        self.state[segment.row_ids, 0] = totals
        rows_of(self.records)[segment.row_ids] -= grads * step_sizes[:, None]
        counts_of(self.records)[segment.row_ids] += 1

    def _to_columns(self, rows: np.ndarray) -> np.ndarray:
        return rows_to_columns(self._world, self._offsets, self._bounds, rows)

    def _to_rows(self, columns: np.ndarray, rows: np.ndarray) -> None:
        columns_to_rows(self._world, self._offsets, self._bounds, columns, rows)


def rows_to_columns(world: MPI.Intracomm, offsets: np.ndarray, bounds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Collective: this rank's columns of all rows, float32 [num_nodes, width], from its rows [num_local, dim]."""
    rank, size = world.Get_rank(), world.Get_size()
    columns = np.empty((offsets[-1], bounds[rank + 1] - bounds[rank]), np.float32)
    for target, source in _pairs(rank, size):
        outgoing = rows[:, bounds[target] : bounds[target + 1]]
        _send_receive(world, outgoing, target, columns[offsets[source] : offsets[source + 1]], source)
    return columns


def columns_to_rows(
    world: MPI.Intracomm, offsets: np.ndarray, bounds: np.ndarray, columns: np.ndarray, rows: np.ndarray
) -> None:
    """Collective: fill the whole rows [num_local, dim] of this rank from every rank's columns [num_nodes, width]."""
    rank, size = world.Get_rank(), world.Get_size()
    for target, source in _pairs(rank, size):
        outgoing = columns[offsets[target] : offsets[target + 1]]
        _send_receive(world, outgoing, target, rows[:, bounds[source] : bounds[source + 1]], source)


def _pairs(rank: int, size: int) -> list[tuple[int, int]]:
    """Whom to send to and whom to receive from, round by round; the first round stays here."""
    return [((rank + shift) % size, (rank - shift) % size) for shift in range(size)]


def _send_receive(world: MPI.Intracomm, outgoing: np.ndarray, target: int, incoming: np.ndarray, source: int) -> None:
    """Exchange matrices in chunks of rows. Both sides know both shapes."""
    if target == world.Get_rank():
        incoming[...] = outgoing
        return
    for start in range(0, max(len(outgoing), len(incoming)), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        request = MPI.REQUEST_NULL
        if start < len(outgoing):
            chunk = np.ascontiguousarray(outgoing[rows])
            request = world.Isend(chunk, target)
        if start < len(incoming):
            received = np.empty(incoming[rows].shape, np.float32)
            world.Recv(received, source)
            incoming[rows] = received
        request.Wait()


def _allgather(world: MPI.Intracomm, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Collective: one value per row of all ranks."""
    gathered = np.empty(offsets[-1], values.dtype)
    world.Allgatherv(np.ascontiguousarray(values), [gathered, np.diff(offsets)])
    return gathered


def _by_kind(state: np.ndarray, num_kinds: int) -> list[np.ndarray]:
    """Views of the optimizer's state, one per kind (Adam: mean, square), each as wide as a row."""
    width = state.shape[1] // num_kinds if num_kinds else 0
    return [state[:, kind * width : (kind + 1) * width] for kind in range(num_kinds)]
