"""What crosses the network in P3's mode: the structure of first layers, their partial sums, and the gradients of these.

Arrays in, arrays out; nothing here computes with a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.gradients.exchange import check_elements


@dataclass(frozen=True)
class FirstStructure:
    """The first layer of one batch, as every rank needs it.

    Attributes:
        nids: integers [num_inputs].
        indptr: int32 [num_dst_nodes + 1], and indices: int32 [num_edges]: its in-edges, by position in `nids`.
        num_dst_nodes: they are the first of `nids`.
        dropout_seed: for torch's generator.
    """

    nids: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    num_dst_nodes: int
    dropout_seed: int


def allgather_structures(world: MPI.Intracomm, own: FirstStructure) -> tuple[list[FirstStructure], int]:
    """Collective: the structures of all ranks' batches, and the bytes that came for them."""
    pieces = [own.nids, own.indptr, own.indices]
    header = np.array([*map(len, pieces), own.num_dst_nodes, own.dropout_seed], np.int64)
    headers = np.empty((world.Get_size(), len(header)), np.int64)
    world.Allgather(header, headers)
    num_bytes = headers[:, :3] @ [piece.itemsize for piece in pieces]
    check_elements(int(num_bytes.sum()))
    gathered = np.empty(int(num_bytes.sum()), np.uint8)
    packed = np.concatenate([piece.view(np.uint8) for piece in pieces])
    world.Allgatherv(packed, [gathered, num_bytes.astype(np.int32)])
    structures = []
    for (num_nids, num_bounds, num_edges, num_dst, seed), start in zip(headers.tolist(), _starts(num_bytes).tolist()):
        content = gathered[start:]
        nid_bytes = num_nids * own.nids.itemsize
        nids = content[:nid_bytes].copy().view(own.nids.dtype)
        bounds_and_edges = content[nid_bytes:][: 4 * (num_bounds + num_edges)].copy().view(np.int32)
        indptr, indices = np.split(bounds_and_edges, [num_bounds])
        structures.append(FirstStructure(nids, indptr, indices, num_dst, seed))
    return structures, len(gathered) - int(num_bytes[world.Get_rank()])


def start_partials(world: MPI.Intracomm, partials: Sequence[np.ndarray]) -> tuple[np.ndarray, MPI.Request]:
    """Collective, does not wait: send every rank what was computed here for its batch.

    Args:
        partials: for each rank, float32 [num_rows of its batch, width].

    Returns:
        float32 [num_ranks, num_rows of this rank's batch, width], and the request that completes it. The request keeps
        what is sent.
    """
    rank, size = world.Get_rank(), world.Get_size()
    num_rows, width = partials[rank].shape
    num_sent = np.array([len(partial) for partial in partials], np.int32)
    num_sent[rank] = 0
    num_received = np.full(size, num_rows, np.int32)
    num_received[rank] = 0
    received = np.empty((size, num_rows, width), np.float32)
    received[rank] = partials[rank]
    check_elements(max(received.size, int(num_sent.sum()) * width))
    outgoing = [partial for other, partial in enumerate(partials) if other != rank]
    packed = np.concatenate(outgoing or [partials[rank][:0]])
    places = np.arange(size, dtype=np.int32) * num_rows
    record = MPI.FLOAT.Create_contiguous(width).Commit()
    request = world.Ialltoallv([packed, num_sent, _starts(num_sent), record], [received, num_received, places, record])
    record.Free()
    return received, request


def allgather_gradients(world: MPI.Intracomm, grad: np.ndarray, num_rows: Sequence[int]) -> list[np.ndarray]:
    """Collective: every rank's gradients, float32 [num_rows of its batch, width], in the order of the ranks."""
    width = grad.shape[1]
    counts = np.asarray(num_rows, np.int32)
    check_elements(int(counts.sum()) * width)
    gathered = np.empty((int(counts.sum()), width), np.float32)
    record = MPI.FLOAT.Create_contiguous(width).Commit()
    world.Allgatherv([grad, len(grad), record], [gathered, counts, record])
    record.Free()
    return np.split(gathered, np.cumsum(counts)[:-1])


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts) - counts
