"""Gradients of cold rows find their way to the one rank that owns each (GLPilot's local aggregation on the way).

The ranks of one host first sum among themselves (host_exchange.py), so that a row leaves a host once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Callable

import numpy as np
import torch

from glpilot.app.embedding.gradients.aggregate import sum_by_id
from glpilot.app.embedding.gradients.exchange import RowExchange
from glpilot.app.embedding.gradients.host_exchange import exchange
from glpilot.app.embedding.rows.plan import AccessPlan, plan_access
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.runtime.communicator import Communicator


class ColdSync:
    """Brings the gradients of cold rows to the ranks that own them."""

    def __init__(
        self,
        name: str,
        kind: str,
        offsets: np.ndarray,
        communicator: Communicator,
        dim: int,
        sums_on_host: bool,
        counters: Counter[str],
        carries_near: bool = True,
        carries_far: bool = True,
    ):
        """
        Args:
            name: of its exchange, see RowExchange.
            kind: "alltoall" or "sparse_allreduce".
            offsets: int64 [num_ranks + 1]: rank r owns the nids offsets[r] … offsets[r + 1] - 1.
            sums_on_host: whether the ranks of a host sum gradients of the same row before one of them sends it.
            counters: what this rank sends is added to "sparse_sync_bytes" (by Horovod, once per receiver),
                "due_gradients" and "sent_gradients" (of other hosts' rows, before and after the sums over this host).
            carries_near, carries_far: whether it is ever given rows of this host, and of others.
        """
        self._kind = kind
        self._communicator = communicator
        self._offsets = offsets
        self._dim = dim
        has_neighbours = communicator.host.Get_size() > 1
        self._sums_on_host = sums_on_host and has_neighbours
        goes_near = carries_near and has_neighbours and not sums_on_host
        self._crosses = goes_near or (carries_far and communicator.num_hosts > 1)
        self._exchange = RowExchange(name, communicator, dim, self._sums_on_host, counters)
        self._counters = counters

    def start(
        self, near: AccessPlan, near_grads: np.ndarray, far: AccessPlan, far_grads: np.ndarray
    ) -> Callable[[], list[Segment]]:
        """Collective, does not wait for other hosts: submit gradients, `near` of rows of this host, `far` of others'.

        Args:
            near_grads, far_grads: float32 [any, dim]; the plans' positions say where.

        Returns:
            A function, collective: waits until every rank has submitted, unless nothing ever crosses, and returns the
            gradients of this rank's rows as segments with the rows' local numbers: its own, whose rows are distinct,
            then those of the others in the order of the ranks.
        """
        own = near.segment_of(self._communicator.rank, near_grads)
        arrived: dict[int, list[Segment]] = {}
        self._counters["due_gradients"] += len(far)
        if self._sums_on_host:
            arrived, far, far_grads = self._sum_on_host(near, near_grads, far, far_grads)
            near = near.select(np.zeros(len(near), np.bool_))
        self._counters["sent_gradients"] += len(far)
        if not self._crosses:
            return lambda: [own, *_in_order(arrived)]
        start = self._start_alltoall if self._kind == "alltoall" else self._start_allreduce
        finish = start(arrived, near, near_grads, far, far_grads)
        return lambda: [own, *finish()]

    def _sum_on_host(
        self, near: AccessPlan, near_grads: np.ndarray, far: AccessPlan, far_grads: np.ndarray
    ) -> tuple[dict[int, list[Segment]], AccessPlan, np.ndarray]:
        """Collective over this host: other ranks' segments of this rank's rows, and its share of the host's far sums.

        The share of a rank is what the ranks in its place on other hosts own.
        """
        communicator = self._communicator
        host = communicator.host
        outgoing: list[list[Segment]] = [[] for _ in range(host.Get_size())]
        for owner in range(communicator.size):
            if communicator.is_near[owner]:
                outgoing[communicator.place_of_rank[owner]].append(near.nid_segment_of(owner, near_grads))
            else:
                outgoing[communicator.place_of_rank[owner] % host.Get_size()].append(
                    far.nid_segment_of(owner, far_grads)
                )
        incoming = exchange(host, outgoing, self._dim)
        first, last = self._offsets[communicator.rank : communicator.rank + 2]
        arrived: dict[int, list[Segment]] = {}
        shares: list[Segment] = []
        for sender, pieces in zip(np.flatnonzero(communicator.is_near).tolist(), incoming):
            for piece in pieces:
                is_own = (piece.row_ids >= first) & (piece.row_ids < last)
                if sender != communicator.rank:
                    arrived.setdefault(sender, []).append(_shift(piece.select(is_own), first))
                shares.append(piece.select(~is_own))
        nids, sums = sum_by_id(shares, self._dim)
        return arrived, plan_access(nids, self._offsets), sums

    def _start_alltoall(
        self,
        arrived: dict[int, list[Segment]],
        near: AccessPlan,
        near_grads: np.ndarray,
        far: AccessPlan,
        far_grads: np.ndarray,
    ) -> Callable[[], list[Segment]]:
        """Every rank gets what it owns."""
        rank, size, is_near = self._communicator.rank, self._communicator.size, self._communicator.is_near
        finish_alltoall = self._exchange.alltoall(
            {
                owner: near.segment_of(owner, near_grads) if is_near[owner] else far.segment_of(owner, far_grads)
                for owner in range(size)
                if owner != rank
            }
        )

        def finish() -> list[Segment]:
            for sender, segment in finish_alltoall().items():
                arrived.setdefault(sender, []).append(segment)
            return _in_order(arrived)

        return finish

    def _start_allreduce(
        self,
        arrived: dict[int, list[Segment]],
        near: AccessPlan,
        near_grads: np.ndarray,
        far: AccessPlan,
        far_grads: np.ndarray,
    ) -> Callable[[], list[Segment]]:
        """Every rank gets every row, or with sums on the host those of the ranks in its place, and keeps its own."""
        communicator = self._communicator
        first, last = self._offsets[communicator.rank : communicator.rank + 2]
        near = near.select(~near.owned_by(np.arange(communicator.size) == communicator.rank))
        nids = np.concatenate([near.nids, far.nids]).astype(np.int64)
        values = np.concatenate([near_grads[near.positions], far_grads[far.positions]])
        finish_allreduce = self._exchange.sparse_allreduce(nids, torch.from_numpy(values), int(self._offsets[-1]))

        def finish() -> list[Segment]:
            nids, values = finish_allreduce()
            positions = np.flatnonzero((nids >= first) & (nids < last))
            gathered = Segment((nids[positions] - first).astype(np.int32), positions, values.numpy())
            return [*_in_order(arrived), gathered]

        return finish


def _shift(segment: Segment, first: int) -> Segment:
    return Segment((segment.row_ids - first).astype(np.int32), segment.positions, segment.values)


def _in_order(arrived: Mapping[int, list[Segment]]) -> list[Segment]:
    return [segment for rank in sorted(arrived) for segment in arrived[rank] if len(segment.row_ids)]
