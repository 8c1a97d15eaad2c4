"""Gradients of hot rows find their way to every replica, summed alike on all ranks.

The ranks of one host first sum among themselves (host_exchange.py), and share out what comes from other hosts.
"""

from __future__ import annotations

from collections import Counter
from typing import Callable

import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.gradients.aggregate import sum_by_id
from glpilot.app.embedding.gradients.exchange import RowExchange
from glpilot.app.embedding.gradients.host_exchange import allgather, exchange
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.runtime.communicator import Communicator


class HotSync:
    """Sums the gradients of rows that every rank holds, the same on all of them bit for bit."""

    def __init__(
        self, kind: str, num_rows: int, communicator: Communicator, dim: int, sums_on_host: bool, counters: Counter[str]
    ):
        """
        Args:
            kind: "dense_allreduce" or "sparse_allreduce".
            num_rows: they are numbered 0 … num_rows - 1 (slots).
            counters: see RowExchange.
        """
        self._kind = kind
        self._communicator = communicator
        self._num_rows = num_rows
        self._dim = dim
        self._sums_on_host = sums_on_host and communicator.host.Get_size() > 1
        self._shares_on_host = self._sums_on_host and (
            communicator.across_hosts is not None or communicator.num_hosts == 1
        )
        self._is_alone = communicator.size == 1 or (self._sums_on_host and communicator.num_hosts == 1)
        self._exchange = RowExchange("hot", communicator, dim, self._sums_on_host, counters)

    def start(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        """Collective, does not wait for other hosts: submit this rank's gradients.

        Args:
            slots: int32 [n], ascending, distinct. grads: float32 [n, dim] on the cache's device.

        Returns:
            A function, collective: waits for all ranks and returns segments by slot, of distinct slots each, the
            same in the same order on every rank.
        """
        if self._num_rows == 0:
            return list
        if self._sums_on_host:
            slots, grads = self._sum_on_host(slots, grads)
        if self._is_alone:
            finish = self._keep(slots, grads)
        elif self._kind == "sparse_allreduce":
            finish = self._start_sparse(slots, grads)
        else:
            finish = self._start_dense(slots, grads)
        if self._shares_on_host:
            return lambda: self._share_on_host(finish())
        return finish

    def _sum_on_host(self, slots: np.ndarray, grads: Tensor) -> tuple[np.ndarray, Tensor]:
        """Collective over this host: this rank's share of the slots, dealt out in turn, as sums over the host."""
        host = self._communicator.host
        everything = Segment(slots.astype(np.int64), np.arange(len(slots)), grads.cpu().numpy())
        outgoing = [[everything.select(slots % host.Get_size() == place)] for place in range(host.Get_size())]
        pieces = [piece for pieces in exchange(host, outgoing, self._dim) for piece in pieces]
        slots, sums = sum_by_id(pieces, self._dim)
        return slots.astype(np.int32), torch.from_numpy(sums).to(grads.device)

    def _share_on_host(self, segments: list[Segment]) -> list[Segment]:
        """Collective over this host: what each rank has of the hosts' sums, to all."""
        slots, sums = sum_by_id([_on_cpu(segment) for segment in segments], self._dim)
        return allgather(self._communicator.host, slots, sums)

    def _keep(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        """There is nobody else to sum with."""
        return lambda: [Segment(slots, np.arange(len(slots)), _in_memory(grads))]

    def _start_sparse(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        finish_allreduce = self._exchange.sparse_allreduce(slots.astype(np.int64), grads, self._num_rows)

        def finish() -> list[Segment]:
            slots, values = finish_allreduce()
            starts = np.flatnonzero(np.diff(slots, prepend=slots[:1] + 1) <= 0)  # each sender's slots ascend
            positions = np.split(np.arange(len(slots)), starts[1:])
            return [
                Segment(slots[where].astype(np.int32), where, _in_memory(values)) for where in positions if len(where)
            ]

        return finish

    def _start_dense(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        dense = torch.zeros((self._num_rows, self._dim + 1), device=grads.device)
        where = torch.from_numpy(slots).long().to(grads.device)
        dense[where, : self._dim] = grads
        dense[where, self._dim] = 1  # tells a touched row from one whose gradients sum to zero
        finish_allreduce = self._exchange.dense_allreduce(dense)

        def finish() -> list[Segment]:
            sums = finish_allreduce()
            touched = np.flatnonzero(sums[:, self._dim].cpu().numpy() > 0)
            return [Segment(touched.astype(np.int32), touched, _in_memory(sums))]

        return finish


def _in_memory(values: Tensor) -> Tensor | np.ndarray:
    """As an array where the tensor is not on a GPU."""
    return values if values.is_cuda else values.numpy()


def _on_cpu(segment: Segment) -> Segment:
    values = segment.values
    return segment._replace(values=values.cpu().numpy() if isinstance(values, Tensor) else values)
