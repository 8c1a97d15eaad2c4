"""Arrays that the ranks of one host share."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from glpilot.app.runtime.communicator import Communicator


class HostArray:
    """A one-dimensional array of zeros in memory that all ranks of a host can load from and store to.

    Every rank contributes a segment of `num_items` (zero allowed); `segment(r)` is that of host rank r. An array
    that is wanted once per host is allocated by host rank 0 alone.
    """

    def __init__(self, communicator: Communicator, num_items: int, dtype) -> None:
        """Collective over the ranks of the host."""
        host = communicator.host
        self.dtype = np.dtype(dtype)
        # Ranks get whole pages, so that no cache line belongs to two of them; a window of nothing is not portable.
        info = MPI.Info.Create({"alloc_shared_noncontig": "true"})
        self.window = MPI.Win.Allocate_shared(max(1, num_items) * self.dtype.itemsize, self.dtype.itemsize, info, host)
        info.Free()
        self.window.Lock_all(MPI.MODE_NOCHECK)
        self._num_items = host.allgather(num_items)
        self.segment(host.Get_rank())[...] = 0  # MPI promises no contents
        self.sync()
        host.Barrier()
        self._communicator = communicator
        communicator.resources.append(self)

    def segment(self, host_rank: int) -> np.ndarray:
        """The items that a rank of this host contributed."""
        memory, _ = self.window.Shared_query(host_rank)
        count = self._num_items[host_rank]
        return np.frombuffer(memory, dtype=self.dtype, count=count)  # type: ignore[call-overload]

    def sync(self) -> None:
        """Order this rank's loads and stores against those of others; not a barrier."""
        self.window.Sync()

    def free(self) -> None:
        """Collective over the ranks of the host. No segment may be used afterwards."""
        self.window.Unlock_all()
        self.window.Free()
        self._communicator.resources.remove(self)
