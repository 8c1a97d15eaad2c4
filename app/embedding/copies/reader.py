"""A batch's embedding rows, put together from where they are: the device cache, this host's memory, the buffer of
copies, or another host.

All reading of a step, the prefetch for the next one included, ends before any owner writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.copies.buffer import StalenessBuffer
from glpilot.app.embedding.copies.cache import DeviceCache
from glpilot.app.embedding.copies.hotness import Hotness
from glpilot.app.embedding.copies.staleness import StalenessRecord, max_ages
from glpilot.app.embedding.rows.plan import AccessPlan
from glpilot.app.embedding.rows.store import EmbeddingStore, Fetch


@dataclass
class Reading:
    """The rows of a batch on their way.

    Attributes:
        hot_slots: int32 [num_hot], ascending, and hot_positions: int64 [num_hot], where these rows stand in the batch.
        cold: all other rows; its positions say where they lie in `rows`.
        cold_positions: int64 [num_cold] where they stand in the batch, if that is not where they lie.
        rows: float32 [num_inputs, dim] in batch order; or [num_cold, dim], packed, if they must still go to a device.
        fetch: those of the cold rows that come from the store.
        num_buffered, num_prefetched: cold rows that were served from copies, and from the last step's prefetch.
    """

    hot_slots: np.ndarray
    hot_positions: np.ndarray
    cold: AccessPlan
    cold_positions: np.ndarray | None
    rows: Tensor
    fetch: Fetch
    num_buffered: int
    num_prefetched: int


@dataclass
class Prefetched:
    """Rows of other hosts that were read in `step` for the next one.

    Attributes:
        nids: int64 [n], ascending. rows: float32 [n, dim].
    """

    step: int
    nids: np.ndarray
    rows: np.ndarray

    def state(self) -> dict[str, np.ndarray]:
        """All of it as arrays, for a checkpoint."""
        return {"step": np.array([self.step]), "nids": self.nids, "rows": self.rows}

    @classmethod
    def of_state(cls, state: dict[str, np.ndarray]) -> Prefetched:
        return cls(int(state["step"][0]), state["nids"], state["rows"])


class RowReader:
    """Reads rows no staler than their bounds.

    Attributes:
        prefetched: rows that were read for the next step, between steps.
    """

    def __init__(
        self,
        store: EmbeddingStore,
        is_near: np.ndarray,
        cache: DeviceCache,
        buffer: StalenessBuffer,
        record: StalenessRecord,
        hotness: Hotness | None,
        max_steps: int,
        max_missed_updates: int,
        device: torch.device,
        packs: bool | None = None,
    ):
        """
        Args:
            is_near: bool [num_ranks]: the ranks of this host.
            hotness: of the rows; None if no copy is ever used (`max_steps` 0).
            packs: pack the cold rows before they go to the device; by default on other devices than the CPU.
        """
        self._store = store
        self._is_far = ~is_near
        self._cache = cache
        self._buffer = buffer
        self._record = record
        self._hotness = hotness
        self._max_steps = max_steps
        self._max_missed_updates = max_missed_updates
        self._device = device
        self._packs = device.type != "cpu" if packs is None else packs
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.prefetched: Prefetched | None = None
        self._prefetch: tuple[int, Fetch] | None = None

    def start(self, whole: AccessPlan, step: int) -> Reading:
        """Find each row, ask other hosts for those that are not here, and load the others. Waits for nobody."""
        hot_slots = self._cache.slots_of(whole.nids) if len(self._cache) else np.full(len(whole), -1, np.int32)
        is_hot = hot_slots >= 0
        cold = whole.select(~is_hot)
        cold_positions = None
        if self._packs:
            cold_positions, cold = cold.positions, cold.packed()
        num_rows = len(cold) if self._packs else len(whole)
        rows = torch.empty((num_rows, self._store.dim), pin_memory=self._stream is not None)
        is_served, num_buffered, num_prefetched = self._serve(cold, step, rows.numpy())
        fetch = self._store.start_fetch(cold.select(~is_served), rows.numpy())
        return Reading(
            hot_slots[is_hot], whole.positions[is_hot], cold, cold_positions, rows, fetch, num_buffered, num_prefetched
        )

    def finish(self, reading: Reading, step: int) -> Tensor:
        """Wait for the rows of other hosts: float32 [num_inputs, dim] on the device, in the order of the batch.

        Collective if the store fetches by alltoall.
        """
        self._store.finish_fetch(reading.fetch)
        self._keep_copies(reading.fetch, step)
        x = self._to_batch_order(reading) if self._packs else reading.rows
        if len(reading.hot_slots):
            slots = torch.from_numpy(reading.hot_slots).to(self._device)
            x[torch.from_numpy(reading.hot_positions).to(self._device)] = self._cache.rows(slots)
        return x

    def start_prefetch(self, whole: AccessPlan, step: int) -> None:
        """Ask for those rows of other hosts that the next batch needs, may use one step old, and has no copy of."""
        is_far = whole.owned_by(self._is_far)
        if len(self._cache):
            is_far &= self._cache.slots_of(whole.nids) < 0
        far = whole.select(is_far)
        wanted = ~self._buffer.can_serve(far.nids, step + 1) & (self._bounds(far.nids) >= 1)
        self._prefetch = step, self._store.start_fetch(far.select(wanted).packed())

    def finish_prefetch(self) -> None:
        """Wait for what was asked for. Collective if the store fetches by alltoall."""
        if self._prefetch is None:
            return
        step, fetch = self._prefetch
        self._store.finish_fetch(fetch)
        self._keep_copies(fetch, step)
        self.prefetched = Prefetched(step, fetch.plan.nids, fetch.rows)
        self._prefetch = None

    def gradients(self, reading: Reading, grad: Tensor) -> tuple[Tensor, np.ndarray]:
        """Split a batch's gradients, float32 [num_inputs, dim] on the device.

        Returns:
            float32 [num_hot, dim] of the hot rows, on the device, in the order of `hot_slots`; and those of the cold
            rows, float32 [any, dim] in memory, at the positions of `reading.cold`.
        """
        hot = grad[torch.from_numpy(reading.hot_positions).to(grad.device)]
        if reading.cold_positions is not None:
            grad = grad[torch.from_numpy(reading.cold_positions).to(grad.device)]
        return hot, grad.cpu().numpy()

    def _serve(self, cold: AccessPlan, step: int, rows: np.ndarray) -> tuple[np.ndarray, int, int]:
        """Fill in the rows of which there are copies: which of the cold ones, and how many from where."""
        is_served = np.zeros(len(cold), np.bool_)
        if self._max_steps == 0:
            return is_served, 0, 0
        far = np.flatnonzero(cold.owned_by(self._is_far))
        nids, positions = cold.nids[far], cold.positions[far]
        found, ages = self._buffer.pull(nids, positions, step, rows)
        num_buffered = int(np.count_nonzero(found))
        if self.prefetched is not None and self.prefetched.step == step - 1:
            here = _place_in(self.prefetched.nids, nids)
            fresh = here >= 0  # read in the last step, whether or not the buffer kept it too
            rows[positions[fresh]] = self.prefetched.rows[here[fresh]]
            num_buffered -= int(np.count_nonzero(found & fresh))
            ages[fresh] = 1
            self._record.add_served(ages[fresh & ~found])
            found |= fresh
        self.prefetched = None
        if (ages[found] > self._bounds(nids[found])).any():
            raise AssertionError("a row was served staler than its bound")
        is_served[far] = found
        return is_served, num_buffered, int(np.count_nonzero(found)) - num_buffered

    def _keep_copies(self, fetch: Fetch, step: int) -> None:
        if self._max_steps == 0:
            return
        far = np.flatnonzero(fetch.plan.owned_by(self._is_far))
        nids = fetch.plan.nids[far]
        assert self._hotness is not None  # since copies are used
        rates = self._hotness.access_rates[nids]
        self._buffer.push(nids, fetch.plan.positions[far], fetch.rows, fetch.counts, step, self._bounds(nids), rates)

    def _bounds(self, nids: np.ndarray) -> np.ndarray:
        assert self._hotness is not None
        return max_ages(self._hotness.update_rates[nids], self._max_steps, self._max_missed_updates)

    def _to_batch_order(self, reading: Reading) -> Tensor:
        num_inputs = len(reading.cold) + len(reading.hot_slots)
        x = torch.empty((num_inputs, self._store.dim), device=self._device)
        positions = torch.from_numpy(reading.cold_positions).to(self._device)
        if self._stream is None:
            x[positions] = reading.rows.to(self._device)
            return x
        with torch.cuda.stream(self._stream):
            rows = reading.rows.to(self._device, non_blocking=True)
        torch.cuda.current_stream(self._device).wait_stream(self._stream)
        rows.record_stream(torch.cuda.current_stream(self._device))
        x[positions] = rows
        return x


def _place_in(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where each value stands in an ascending array, -1 if it does not."""
    if len(ascending) == 0:
        return np.full(len(values), -1)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[places] == values, places, -1)
