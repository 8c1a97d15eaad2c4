"""The kinds of exchange by which row gradients cross hosts, all of them Horovod's. Rows in, rows out: who needs which
rows is decided by those who call (cold_sync.py, hot_sync.py).

Horovod's latency is its cycle, so each kind is submitted first and waited for later, and a step submits all that it has
before it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Callable

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.rows.records import pack_gradients
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.runtime.communicator import Communicator

# Horovod hands MPI counts of elements as C ints.
MAX_ELEMENTS = 2**31 - 1


class RowExchange:
    """Horovod's operations on rows of one width, under one name."""

    def __init__(self, name: str, communicator: Communicator, dim: int, across_hosts: bool, counters: Counter[str]):
        """
        Args:
            name: of the operations; two that are under way together need different ones.
            across_hosts: whether an allreduce is among the ranks in this rank's place on every host, where there is a
                group of these, since the ranks of a host have summed before.
            counters: what this rank sends is added to "sparse_sync_bytes", once per receiver.
        """
        self._name = name
        self._size = communicator.size
        self._dim = dim
        group = communicator.across_hosts if across_hosts else None
        self._group = {} if group is None else {"process_set": group}
        self._num_members = communicator.size if group is None else communicator.num_hosts
        self._counters = counters

    def alltoall(self, outgoing: Mapping[int, Segment]) -> Callable[[], dict[int, Segment]]:
        """Collective, does not wait: send other ranks their rows.

        Args:
            outgoing: rank → gradients with int32 row ids; a rank that is left out gets nothing.

        Returns:
            A function, collective: waits for all ranks and returns what came, by sender, those with rows only.
        """
        splits = np.array(
            [len(outgoing[rank].row_ids) if rank in outgoing else 0 for rank in range(self._size)], np.int32
        )
        packed = np.empty((int(splits.sum()), self._dim + 1), np.float32)
        check_elements(packed.size)
        bounds = np.concatenate([[0], np.cumsum(splits)])
        for rank, segment in outgoing.items():
            if splits[rank]:
                pack_gradients(
                    segment.values, segment.positions, segment.row_ids, packed[bounds[rank] : bounds[rank + 1]]
                )
        self._counters["sparse_sync_bytes"] += packed.nbytes
        handle = hvd.alltoall_async(torch.from_numpy(packed), torch.from_numpy(splits), name=self._name)

        def finish() -> dict[int, Segment]:
            received, num_received = (tensor.numpy() for tensor in hvd.synchronize(handle))
            row_ids = received.view(np.int32)[:, -1].copy()
            stops = np.cumsum(num_received)
            places = {
                sender: np.arange(stops[sender] - num_received[sender], stops[sender])
                for sender in np.flatnonzero(num_received).tolist()
            }
            return {sender: Segment(row_ids[where], where, received) for sender, where in places.items()}

        return finish

    def sparse_allreduce(
        self, ids: np.ndarray, values: Tensor, num_rows: int
    ) -> Callable[[], tuple[np.ndarray, Tensor]]:
        """Collective, does not wait: everybody's rows to everybody. Horovod sums nothing here.

        Args:
            ids: int64 [n] of `num_rows` rows in all. values: float32 [n, dim].

        Returns:
            A function, collective: waits for all ranks and returns ids and values, one rank's after the other's.
        """
        check_elements(values.numel() * self._num_members)
        self._counters["sparse_sync_bytes"] += (4 * values.numel() + ids.nbytes) * (self._num_members - 1)
        indices = torch.from_numpy(ids).unsqueeze(0).to(values.device)
        rows = torch.sparse_coo_tensor(indices, values, (num_rows, values.shape[1]))
        finish_allreduce = hvd.sparse_allreduce_async(rows, name=self._name, op=hvd.Sum, **self._group)

        def finish() -> tuple[np.ndarray, Tensor]:
            gathered = finish_allreduce()
            return gathered._indices()[0].cpu().numpy(), gathered._values()

        return finish

    def dense_allreduce(self, rows: Tensor) -> Callable[[], Tensor]:
        """Collective, does not wait: sum all rows, float32 [any, any], in place. Counted as a ring sends it.

        Returns:
            A function, collective: waits for all ranks and returns the sums.
        """
        check_elements(rows.numel())
        self._counters["sparse_sync_bytes"] += int(rows.numel() * 4 * 2 * (self._num_members - 1) / self._num_members)
        handle = hvd.allreduce_async_(rows, name=self._name, op=hvd.Sum, **self._group)
        return lambda: hvd.synchronize(handle)


def check_elements(num_elements: int) -> None:
    """Raises OverflowError if a step's rows are more than MPI can count."""
    if num_elements > MAX_ELEMENTS:
        raise OverflowError(
            f"a step's row gradients exceed {MAX_ELEMENTS} elements; lower sampler.batch_size or embedding.dim"
        )
