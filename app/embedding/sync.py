"""Gradients across ranks, by Horovod: rows to their owners, dense parameters to everybody.

Horovod's latency is its cycle, so a step submits its operations together and then waits once for each.
"""
from __future__ import annotations

from typing import Callable

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.aggregate import Segment
from glpilot.app.embedding.plan import AccessPlan
from glpilot.app.embedding.records import pack_gradients

# Horovod hands MPI counts of elements as C ints.
MAX_ELEMENTS = 2**31 - 1


def choose_cold_sync(setting: str, num_ranks: int) -> str:
    """Resolve `auto`: rows that only their owner needs cost num_ranks times less by alltoall."""
    return ("alltoall" if num_ranks > 1 else "sparse_allreduce") if setting == "auto" else setting


class RowSync:
    """Brings row gradients to the ranks that own the rows."""

    def __init__(self, kind: str, rank: int, num_ranks: int):
        """`kind` is "alltoall" or "sparse_allreduce"."""
        self._kind = kind
        self._rank = rank
        self._num_ranks = num_ranks

    def start(self, plan: AccessPlan, grads: np.ndarray) -> Callable[[], list[Segment]]:
        """Collective, does not wait: submit this rank's row gradients, float32 [num_inputs, dim] in batch order.

        Returns:
            A function, collective: waits until every rank has submitted (so has read all it wants this step) and
            returns the gradients of this rank's rows as segments in the order of the ranks that sent them, with
            the rows' local numbers.
        """
        num_elements = len(plan) * (grads.shape[1] + 1)
        if num_elements * (self._num_ranks if self._kind == "sparse_allreduce" else 1) > MAX_ELEMENTS:
            raise OverflowError(
                f"a step's row gradients exceed {MAX_ELEMENTS} elements; lower sampler.batch_size or embedding.dim"
            )
        if self._num_ranks == 1:
            segments = [self._own_segment(plan, grads)]
            return lambda: segments
        return (self._start_alltoall if self._kind == "alltoall" else self._start_allreduce)(plan, grads)

    def num_rows_sent(self, plan: AccessPlan) -> int:
        """Rows that leave this rank for another, counted once per receiver."""
        if self._kind == "alltoall" or self._num_ranks == 1:
            return len(plan) - plan.count(self._rank)
        return len(plan) * (self._num_ranks - 1)

    def _own_segment(self, plan: AccessPlan, grads: np.ndarray) -> Segment:
        return Segment(plan.local_nids_of(self._rank), plan.positions_of(self._rank), grads)

    def _start_alltoall(self, plan: AccessPlan, grads: np.ndarray) -> Callable[[], list[Segment]]:
        others = [rank for rank in range(self._num_ranks) if rank != self._rank]
        splits = np.diff(plan.bounds).astype(np.int32)
        splits[self._rank] = 0  # our own rows stay here
        packed = np.empty((splits.sum(), grads.shape[1] + 1), np.float32)
        pack_gradients(
            grads,
            np.concatenate([plan.positions_of(rank) for rank in others]),
            np.concatenate([plan.local_nids_of(rank) for rank in others]),
            packed,
        )
        handle = hvd.alltoall_async(torch.from_numpy(packed), torch.from_numpy(splits), name="rows")

        def finish() -> list[Segment]:
            received, num_received = (tensor.numpy() for tensor in hvd.synchronize(handle))
            row_ids = received.view(np.int32)[:, -1].copy()
            stops = np.cumsum(num_received)
            segments = []
            for rank in range(self._num_ranks):
                if rank == self._rank:
                    segments.append(self._own_segment(plan, grads))
                else:
                    positions = np.arange(stops[rank] - num_received[rank], stops[rank])
                    segments.append(Segment(row_ids[positions], positions, received))
            return segments

        return finish

    def _start_allreduce(self, plan: AccessPlan, grads: np.ndarray) -> Callable[[], list[Segment]]:
        nids = np.empty(len(plan), np.int64)
        nids[plan.positions] = plan.nids
        first, last = plan.offsets[self._rank], plan.offsets[self._rank + 1]
        rows = torch.sparse_coo_tensor(
            torch.from_numpy(nids).unsqueeze(0), torch.from_numpy(grads), (int(plan.offsets[-1]), grads.shape[1])
        )
        finish_allreduce = hvd.sparse_allreduce_async(rows, name="rows", op=hvd.Sum)

        def finish() -> list[Segment]:
            summed = finish_allreduce()
            nids = summed._indices()[0].numpy()
            positions = np.flatnonzero((nids >= first) & (nids < last))
            return [Segment((nids[positions] - first).astype(np.int32), positions, summed._values().numpy())]

        return finish


class DenseSync:
    """Sums the gradients of the model's parameters, and the loss beside them, over all ranks."""

    def __init__(self, parameters: list[Tensor], num_ranks: int):
        self._parameters = parameters
        self._num_ranks = num_ranks
        self.num_bytes = 4 * (sum(parameter.numel() for parameter in parameters) + 1)

    def start(self, loss: Tensor) -> Callable[[], float]:
        """Collective, does not wait: submit the parameters' gradients and this rank's share of the loss.

        Returns:
            A function, collective: waits, leaves the sums in the parameters' `.grad`, returns the global loss.
        """
        grads = [parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                 for parameter in self._parameters]
        flat = torch.cat([grad.flatten() for grad in grads] + [loss.detach().reshape(1)])
        handle = hvd.allreduce_async_(flat, name="dense", op=hvd.Sum) if self._num_ranks > 1 else None

        def finish() -> float:
            if handle is not None:
                hvd.synchronize(handle)
            pieces = flat[:-1].split([parameter.numel() for parameter in self._parameters])
            for parameter, piece in zip(self._parameters, pieces):
                parameter.grad = piece.view_as(parameter)
            return float(flat[-1])

        return finish
