"""Gradients across ranks, by Horovod: rows to their owners or to every replica, dense parameters to everybody.

Horovod's latency is its cycle, so a step submits its operations together and then waits once for each. Ranks of one
host first sum among themselves (host_exchange.py), so that a row leaves a host once.
"""
from __future__ import annotations

from collections import Counter
from typing import Callable, Sequence

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor

from glpilot.app.runtime.communicator import Communicator
from glpilot.app.embedding.gradients.aggregate import sum_by_id
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.gradients.host_exchange import allgather, exchange
from glpilot.app.embedding.rows.plan import AccessPlan, plan_access
from glpilot.app.embedding.rows.records import pack_gradients

# Horovod hands MPI counts of elements as C ints.
MAX_ELEMENTS = 2**31 - 1


class ColdSync:
    """Brings the gradients of cold rows to the ranks that own them."""

    def __init__(
        self, name: str, kind: str, communicator: Communicator, offsets: np.ndarray, dim: int, sums_on_host: bool,
        counters: Counter[str], carries_near: bool = True, carries_far: bool = True,
    ):
        """
        Args:
            name: of its operations; two that are under way together need different ones.
            kind: "alltoall" or "sparse_allreduce".
            counters: what this rank sends is added to "sparse_sync_bytes" (by Horovod, once per receiver),
                "due_gradients" and "sent_gradients" (of other hosts' rows, before and after the sums over this host).
            carries_near, carries_far: whether it is ever given rows of this host, and of others.
        """
        self._name = name
        self._kind = kind
        self._communicator = communicator
        self._offsets = offsets
        self._dim = dim
        has_neighbours = communicator.host.Get_size() > 1
        self._sums_on_host = sums_on_host and has_neighbours
        goes_near = carries_near and has_neighbours and not sums_on_host
        self._crosses = goes_near or (carries_far and communicator.num_hosts > 1)
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
                outgoing[communicator.place_of_rank[owner] % host.Get_size()].append(far.nid_segment_of(owner, far_grads))
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
        self, arrived: dict[int, list[Segment]], near: AccessPlan, near_grads: np.ndarray, far: AccessPlan,
        far_grads: np.ndarray,
    ) -> Callable[[], list[Segment]]:
        rank, size, is_near = self._communicator.rank, self._communicator.size, self._communicator.is_near
        segments = [near.segment_of(other, near_grads) if is_near[other] else far.segment_of(other, far_grads)
                    for other in range(size)]
        splits = np.array([len(segment.row_ids) for segment in segments], np.int32)
        splits[rank] = 0  # our own rows stay here
        packed = np.empty((int(splits.sum()), self._dim + 1), np.float32)
        check_elements(packed.size)
        bounds = np.concatenate([[0], np.cumsum(splits)])
        for other, segment in enumerate(segments):
            if splits[other]:
                pack_gradients(segment.values, segment.positions, segment.row_ids, packed[bounds[other] : bounds[other + 1]])
        self._counters["sparse_sync_bytes"] += packed.nbytes
        handle = hvd.alltoall_async(torch.from_numpy(packed), torch.from_numpy(splits), name=self._name)

        def finish() -> list[Segment]:
            received, num_received = (tensor.numpy() for tensor in hvd.synchronize(handle))
            row_ids = received.view(np.int32)[:, -1].copy()
            stops = np.cumsum(num_received)
            for sender in range(size):
                if num_received[sender]:
                    positions = np.arange(stops[sender] - num_received[sender], stops[sender])
                    arrived.setdefault(sender, []).append(Segment(row_ids[positions], positions, received))
            return _in_order(arrived)

        return finish

    def _start_allreduce(
        self, arrived: dict[int, list[Segment]], near: AccessPlan, near_grads: np.ndarray, far: AccessPlan,
        far_grads: np.ndarray,
    ) -> Callable[[], list[Segment]]:
        """Every rank gets every row, or with sums on the host those of the ranks in its place, and keeps its own."""
        communicator = self._communicator
        first, last = self._offsets[communicator.rank : communicator.rank + 2]
        near = near.select(~near.owned_by(np.arange(communicator.size) == communicator.rank))
        nids = np.concatenate([near.nids, far.nids]).astype(np.int64)
        values = np.concatenate([near_grads[near.positions], far_grads[far.positions]])
        group = communicator.across_hosts if self._sums_on_host else None
        num_members = communicator.num_hosts if group is not None else communicator.size
        check_elements(values.size * num_members)
        self._counters["sparse_sync_bytes"] += (values.nbytes + nids.nbytes) * (num_members - 1)
        finish_allreduce = _start_sparse_allreduce(nids, torch.from_numpy(values), int(self._offsets[-1]), self._name, group)

        def finish() -> list[Segment]:
            nids, values = (tensor.numpy() for tensor in finish_allreduce())
            positions = np.flatnonzero((nids >= first) & (nids < last))
            gathered = Segment((nids[positions] - first).astype(np.int32), positions, values)
            return [*_in_order(arrived), gathered]

        return finish


class HotSync:
    """Sums the gradients of rows that every rank holds, the same on all of them bit for bit."""

    def __init__(
        self, kind: str, communicator: Communicator, num_rows: int, dim: int, sums_on_host: bool, counters: Counter[str]
    ):
        """
        Args:
            kind: "dense_allreduce" or "sparse_allreduce".
            num_rows: they are numbered 0 … num_rows - 1 (slots).
            counters: what this rank sends is added to "sparse_sync_bytes"; a dense allreduce counts as a ring does.
        """
        self._kind = kind
        self._communicator = communicator
        self._num_rows = num_rows
        self._dim = dim
        self._sums_on_host = sums_on_host and communicator.host.Get_size() > 1
        self._group = communicator.across_hosts if self._sums_on_host else None
        self._counters = counters

    def start(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        """Collective, does not wait for other hosts: submit this rank's gradients.

        Args:
            slots: int32 [n], ascending, distinct. grads: float32 [n, dim] on the cache's device.

        Returns:
            A function, collective: waits for all ranks and returns segments by slot, of distinct slots each, the
            same in the same order on every rank.
        """
        communicator = self._communicator
        if self._num_rows == 0:
            return lambda: []
        if self._sums_on_host:
            slots, grads = self._sum_on_host(slots, grads)
        if communicator.num_hosts == 1 and self._sums_on_host or communicator.size == 1:
            finish = lambda: [Segment(slots, np.arange(len(slots)), _in_memory(grads))]  # noqa: E731
        elif self._kind == "sparse_allreduce":
            finish = self._start_sparse(slots, grads)
        else:
            finish = self._start_dense(slots, grads)
        if self._sums_on_host and (self._group is not None or communicator.num_hosts == 1):
            return lambda: self._share_on_host(finish(), grads.device)
        return finish

    def _sum_on_host(self, slots: np.ndarray, grads: Tensor) -> tuple[np.ndarray, Tensor]:
        """Collective over this host: this rank's share, every so-manieth slot, summed over the host's ranks."""
        host = self._communicator.host
        everything = Segment(slots.astype(np.int64), np.arange(len(slots)), grads.cpu().numpy())
        outgoing = [[everything.select(slots % host.Get_size() == place)] for place in range(host.Get_size())]
        pieces = [piece for pieces in exchange(host, outgoing, self._dim) for piece in pieces]
        slots, sums = sum_by_id(pieces, self._dim)
        return slots.astype(np.int32), torch.from_numpy(sums).to(grads.device)

    def _share_on_host(self, segments: list[Segment], device: torch.device) -> list[Segment]:
        """Collective over this host: what each rank has of the hosts' sums, to all."""
        slots, sums = sum_by_id([_on_cpu(segment) for segment in segments], self._dim)
        return allgather(self._communicator.host, slots, sums)

    def _start_sparse(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        num_members = self._communicator.num_hosts if self._group is not None else self._communicator.size
        check_elements(grads.numel() * num_members)
        self._counters["sparse_sync_bytes"] += (4 * grads.numel() + 8 * len(slots)) * (num_members - 1)
        finish_allreduce = _start_sparse_allreduce(slots.astype(np.int64), grads, self._num_rows, "hot", self._group)

        def finish() -> list[Segment]:
            gathered, values = finish_allreduce()
            slots = gathered.cpu().numpy()
            starts = np.flatnonzero(np.diff(slots, prepend=slots[:1] + 1) <= 0)  # each sender's slots ascend
            positions = np.split(np.arange(len(slots)), starts[1:])
            return [Segment(slots[where].astype(np.int32), where, _in_memory(values)) for where in positions if len(where)]

        return finish

    def _start_dense(self, slots: np.ndarray, grads: Tensor) -> Callable[[], list[Segment]]:
        num_members = self._communicator.num_hosts if self._group is not None else self._communicator.size
        dense = torch.zeros((self._num_rows, self._dim + 1), device=grads.device)
        check_elements(dense.numel())
        where = torch.from_numpy(slots).long().to(grads.device)
        dense[where, : self._dim] = grads
        dense[where, self._dim] = 1  # tells a touched row from one whose gradients sum to zero
        self._counters["sparse_sync_bytes"] += int(dense.numel() * 4 * 2 * (num_members - 1) / num_members)
        handle = hvd.allreduce_async_(dense, name="hot", op=hvd.Sum, **_in_group(self._group))

        def finish() -> list[Segment]:
            hvd.synchronize(handle)
            touched = np.flatnonzero(dense[:, self._dim].cpu().numpy() > 0)
            return [Segment(touched.astype(np.int32), touched, _in_memory(dense))]

        return finish


class DenseSync:
    """Sums the gradients of the model's parameters, and the loss beside them, over all ranks."""

    def __init__(self, parameters: list[Tensor], num_ranks: int):
        self._parameters = parameters
        self._num_ranks = num_ranks
        self.num_bytes_per_step = 4 * (sum(parameter.numel() for parameter in parameters) + 1)

    def start(self, loss: Tensor) -> Callable[[], float]:
        """Collective, does not wait: submit the parameters' gradients and this rank's share of the loss.

        Returns:
            A function, collective: waits until every rank has submitted, leaves the sums in the parameters'
            `.grad`, returns the global loss.
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


def check_elements(num_elements: int) -> None:
    """Raises OverflowError if a step's rows are more than MPI can count."""
    if num_elements > MAX_ELEMENTS:
        raise OverflowError(
            f"a step's row gradients exceed {MAX_ELEMENTS} elements; lower sampler.batch_size or embedding.dim"
        )


def _start_sparse_allreduce(
    ids: np.ndarray, values: Tensor, num_rows: int, name: str, group
) -> Callable[[], tuple[Tensor, Tensor]]:
    """Collective: everybody's ids (int64) and values, one rank's after the other's; nothing is summed."""
    indices = torch.from_numpy(ids).unsqueeze(0).to(values.device)
    rows = torch.sparse_coo_tensor(indices, values, (num_rows, values.shape[1]))
    finish = hvd.sparse_allreduce_async(rows, name=name, op=hvd.Sum, **_in_group(group))

    def gathered() -> tuple[Tensor, Tensor]:
        result = finish()
        return result._indices()[0], result._values()

    return gathered


def _in_group(group) -> dict:
    return {} if group is None else {"process_set": group}


def _shift(segment: Segment, first: int) -> Segment:
    return Segment((segment.row_ids - first).astype(np.int32), segment.positions, segment.values)


def _in_memory(values: Tensor) -> Tensor | np.ndarray:
    """As an array where the tensor is not on a GPU."""
    return values if values.is_cuda else values.numpy()


def _on_cpu(segment: Segment) -> Segment:
    values = segment.values
    return segment._replace(values=values.cpu().numpy() if isinstance(values, Tensor) else values)


def _in_order(arrived: dict[int, Sequence[Segment]]) -> list[Segment]:
    return [segment for rank in sorted(arrived) for segment in arrived[rank] if len(segment.row_ids)]
