"""The sharded table of rows: each rank owns a contiguous range, any rank reads any row.

Rows of ranks on this host are loaded directly from shared memory. Rows of other hosts come by one-sided Get, one
indexed Get per owner; or all rows come by a two-sided exchange, where a network has poor one-sided support.

Reads and writes never overlap: all ranks read, meet, owners write their own rows, and meet again
(`start_publishing`, `finish_publishing`) before anyone reads. There are no remote writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.rows.plan import AccessPlan
from glpilot.app.embedding.rows.records import scatter_rows
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.runtime.host_memory import HostArray


@dataclass
class Fetch:
    """Rows on their way.

    Attributes:
        rows: float32 [any, dim], filled at the plan's positions; complete after `finish_fetch`.
        counts: int32 [any]: the rows' update counts, at the same positions.
        pending: for each owner on another host, its rank and the records it sends.
    """

    plan: AccessPlan
    rows: np.ndarray
    counts: np.ndarray
    pending: list[tuple[int, np.ndarray]]


class EmbeddingStore:
    """Rows of all ranks, float32 of `dim`, with their update counts.

    Attributes:
        records: float32 [num_rows_local, dim + 1]: this rank's own rows, to be written only between the
            synchronisation of gradients and `start_publishing`.
        offsets: int64 [num_ranks + 1]: rank r owns the nids offsets[r] … offsets[r + 1] - 1.
    """

    def __init__(self, communicator: Communicator, offsets: Sequence[int] | np.ndarray, dim: int, fetch: str = "rma"):
        """Collective: allocates the shared memory and the windows.

        Args:
            fetch: "rma" for one-sided reads, "alltoall" for two-sided ones.
        """
        self._communicator = communicator
        self._world = communicator.world
        self._use_alltoall = fetch == "alltoall"
        self.dim = dim
        self.offsets = np.asarray(offsets, np.int64)
        num_rows_local = int(self.offsets[communicator.rank + 1] - self.offsets[communicator.rank])
        self._memory = HostArray(communicator, num_rows_local * (dim + 1), np.float32)
        self._records_of_rank = self._map_host()
        self.records = self._records_of_rank[communicator.rank]
        self._window = MPI.Win.Create(self.records, 1, comm=self._world)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self._record_type = MPI.FLOAT.Create_contiguous(dim + 1).Commit()
        self._barrier = MPI.REQUEST_NULL
        communicator.resources.append(self)

    @property
    def record_bytes(self) -> int:
        """Of a row with its update count, as it is fetched."""
        return 4 * (self.dim + 1)

    def is_local(self, rank: int) -> bool:
        """Whether a rank's rows lie in this host's memory."""
        return rank in self._records_of_rank

    def start_fetch(self, plan: AccessPlan, rows: np.ndarray | None = None) -> Fetch:
        """Ask for the rows of a plan, and load those that lie on this host. Waits for nobody.

        Args:
            rows: where to put them, float32 [any, dim]; by default an array of their number.
        """
        rows = np.empty((len(plan), self.dim), np.float32) if rows is None else rows
        fetch = Fetch(
            plan=plan,
            rows=rows,
            counts=np.empty(len(rows), np.int32),
            pending=[] if self._use_alltoall else self._start_get(plan),
        )
        if not self._use_alltoall:
            for rank, records in self._records_of_rank.items():
                scatter_rows(records, plan.local_nids_of(rank), plan.positions_of(rank), fetch.rows, fetch.counts)
        return fetch

    def finish_fetch(self, fetch: Fetch) -> None:
        """Complete `fetch.rows` and `fetch.counts`. Collective if the store was made with fetch="alltoall"."""
        if self._use_alltoall:
            fetch.pending = self._exchange(fetch.plan)
        elif fetch.pending:
            self._window.Flush_all()
        for rank, records in fetch.pending:
            rows = np.arange(len(records), dtype=np.int32)
            scatter_rows(records, rows, fetch.plan.positions_of(rank), fetch.rows, fetch.counts)

    def fetch(self, plan: AccessPlan) -> Fetch:
        """Start and finish a fetch. Collective if the store was made with fetch="alltoall"."""
        fetch = self.start_fetch(plan)
        self.finish_fetch(fetch)
        return fetch

    def start_publishing(self) -> None:
        """Collective, does not wait: this rank has written its rows of this step."""
        self._memory.sync()
        self._window.Sync()
        self._barrier = self._world.Ibarrier()

    def finish_publishing(self) -> None:
        """Collective: waits until every rank has written, so that reading may begin."""
        self._barrier.Wait()
        self._memory.sync()
        self._window.Sync()

    def free(self) -> None:
        """Collective. No row may be used afterwards."""
        self._barrier.Wait()
        self._window.Unlock_all()
        self._window.Free()
        self._record_type.Free()
        del self.records, self._records_of_rank
        self._memory.free()
        self._communicator.resources.remove(self)

    def _map_host(self) -> dict[int, np.ndarray]:
        """World rank → its records, for the ranks of this host."""
        host_ranks = [
            rank
            for rank, host in enumerate(self._communicator.host_of_rank)
            if host == self._communicator.host_of_rank[self._communicator.rank]
        ]
        return {
            rank: self._memory.segment(host_rank).reshape(-1, self.dim + 1) for host_rank, rank in enumerate(host_ranks)
        }

    def _start_get(self, plan: AccessPlan) -> list[tuple[int, np.ndarray]]:
        """Ask every owner on another host for its rows; the buffers are filled after a flush."""
        pending = []
        for rank in range(self._communicator.size):
            if self.is_local(rank) or plan.count(rank) == 0:
                continue
            buffer = np.empty((plan.count(rank), self.dim + 1), np.float32)
            target_type = self._indexed_type(plan.local_nids_of(rank))
            self._window.Get([buffer, len(buffer), self._record_type], rank, [0, 1, target_type])
            target_type.Free()  # MPI keeps it until the Get is complete
            pending.append((rank, buffer))
        return pending

    def _indexed_type(self, local_nids: np.ndarray) -> MPI.Datatype:
        """The records at ascending row numbers, neighbours merged into one block."""
        first_of_block = np.flatnonzero(np.diff(local_nids, prepend=-2) != 1)
        lengths = np.diff(first_of_block, append=len(local_nids))
        starts = local_nids[first_of_block]  # MPI takes arrays of C ints as they are
        return self._record_type.Create_indexed(lengths.astype(np.int32), starts).Commit()  # type: ignore[arg-type]

    def _exchange(self, plan: AccessPlan) -> list[tuple[int, np.ndarray]]:
        """Collective: send every owner, ourselves included, the row numbers we want, and answer theirs."""
        num_wanted = np.diff(plan.bounds).astype(np.int32)
        num_asked = np.empty_like(num_wanted)
        self._world.Alltoall(num_wanted, num_asked)
        wanted = np.concatenate([plan.local_nids_of(rank) for rank in range(self._communicator.size)])
        asked = np.empty(num_asked.sum(), np.int32)
        self._world.Alltoallv([wanted, num_wanted], [asked, num_asked])
        answer = self.records[asked]
        received = np.empty((len(plan), self.dim + 1), np.float32)
        self._world.Alltoallv([answer, num_asked, self._record_type], [received, num_wanted, self._record_type])
        return [(rank, received[plan.bounds[rank] : plan.bounds[rank + 1]]) for rank in range(self._communicator.size)]
