"""Rows passed between the ranks of one host, so that they are summed before anything leaves it (GLPilot).

The ranks of a host share the work: each collects some of the rows, and is the only one that sends those on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.rows.segment import Segment


def exchange(host: MPI.Intracomm, outgoing: Sequence[Sequence[Segment]], dim: int) -> list[list[Segment]]:
    """Collective over the ranks of a host: outgoing[r] goes to host rank r.

    Returns:
        for each host rank what came from it; what goes to this rank itself is handed over as it is.
    """
    me = host.Get_rank()
    num_sent = np.array([sum(len(rows.row_ids) for rows in pieces) for pieces in outgoing], np.int32)
    num_sent[me] = 0
    num_received = np.empty_like(num_sent)
    host.Alltoall(num_sent, num_received)
    packed = np.empty((int(num_sent.sum()), dim + 2), np.float32)
    start = 0
    for rank, pieces in enumerate(outgoing):
        for rows in pieces if rank != me else ():
            _pack(*rows, packed[start : start + len(rows.row_ids)])
            start += len(rows.row_ids)
    record = MPI.FLOAT.Create_contiguous(dim + 2).Commit()
    received = np.empty((int(num_received.sum()), dim + 2), np.float32)
    host.Alltoallv([packed, num_sent, record], [received, num_received, record])
    record.Free()
    bounds = np.concatenate([[0], np.cumsum(num_received)])
    return [
        list(outgoing[me]) if rank == me else [_unpack(received[bounds[rank] : bounds[rank + 1]], dim)]
        for rank in range(len(num_sent))
    ]


def allgather(host: MPI.Intracomm, ids: np.ndarray, values: np.ndarray) -> list[Segment]:
    """Collective over the ranks of a host: everybody's rows, in the order of the host ranks."""
    dim = values.shape[1]
    packed = np.empty((len(ids), dim + 2), np.float32)
    _pack(ids, np.arange(len(ids)), values, packed)
    counts = np.array(host.allgather(len(ids)), np.int32)
    record = MPI.FLOAT.Create_contiguous(dim + 2).Commit()
    gathered = np.empty((int(counts.sum()), dim + 2), np.float32)
    host.Allgatherv([packed, len(ids), record], [gathered, counts, record])
    record.Free()
    bounds = np.concatenate([[0], np.cumsum(counts)])
    return [_unpack(gathered[first:last], dim) for first, last in zip(bounds, bounds[1:])]


def _unpack(packed: np.ndarray, dim: int) -> Segment:
    bits = packed.view(np.int32)
    ids = bits[:, dim].astype(np.int64) | (bits[:, dim + 1].astype(np.int64) << 31)
    return Segment(ids, np.arange(len(packed)), packed)


@numba.njit(cache=True, nogil=True)
def _pack(ids, positions, values, packed):
    """Two columns of 31 bits each hold an id, whatever the alignment of a row."""
    dim = packed.shape[1] - 2
    bits = packed.view(np.int32)
    for i in range(len(ids)):
        for d in range(dim):
            packed[i, d] = values[positions[i], d]
        bits[i, dim] = np.int32(ids[i] & 0x7FFFFFFF)
        bits[i, dim + 1] = np.int32(ids[i] >> 31)
