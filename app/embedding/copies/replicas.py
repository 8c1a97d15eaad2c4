"""Bringing the hot rows to every rank, and proving that the replicas are equal."""

from __future__ import annotations

import hashlib

import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.copies.cache import DeviceCache


def allgather_rows(world: MPI.Intracomm, rows: np.ndarray) -> np.ndarray:
    """Collective: the rows [n, width] of all ranks, one rank's after the other's, of one dtype and width."""
    counts = np.array(world.allgather(len(rows)), np.int32)
    width = rows.shape[1]
    gathered = np.empty((int(counts.sum()), width), rows.dtype)
    if width:
        record = MPI._typedict[rows.dtype.char].Create_contiguous(width).Commit()
        world.Allgatherv([np.ascontiguousarray(rows), len(rows), record], [gathered, counts, record])
        record.Free()
    return gathered


def check_equal(world: MPI.Intracomm, cache: DeviceCache) -> None:
    """Collective: compare all ranks' replicas bit for bit.

    Raises:
        AssertionError: they differ, on every rank.
    """
    digest = hashlib.blake2b(cache.records.cpu().numpy().tobytes(), digest_size=16)
    digest.update(cache.state.cpu().numpy().tobytes())
    digests = world.allgather(digest.hexdigest())
    different = [rank for rank, other in enumerate(digests) if other != digests[0]]
    if different:
        raise AssertionError(f"the hot rows of ranks {different} differ from those of rank 0")
