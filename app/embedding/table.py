"""The learnable rows as one rank sees them: its own rows, copies of others', and the gradients under way.

This puts the three rooms below together: rows/ (where a row lives and how it is updated), copies/ (where else it may be
read) and gradients/ (how its gradient comes home). The order in which they act is the step's (app/training/step.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Callable

import numpy as np
import torch

from glpilot.app.embedding.copies.buffer import StalenessBuffer
from glpilot.app.embedding.copies.cache import DeviceCache
from glpilot.app.embedding.copies.hotness import AccessCounter
from glpilot.app.embedding.copies.reader import Prefetched, RowReader
from glpilot.app.embedding.copies.replicas import allgather_rows
from glpilot.app.embedding.copies.staleness import StalenessRecord
from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.gradients.cold_sync import ColdSync
from glpilot.app.embedding.gradients.hot_sync import HotSync
from glpilot.app.embedding.gradients.window import GradientWindow
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.rows.store import EmbeddingStore
from glpilot.app.embedding.techniques import Techniques
from glpilot.app.runtime.communicator import Communicator


class LearnableTable:
    """The rows of all ranks, with what this rank needs to read and to update them.

    Attributes:
        store: where the rows live.
        state: float32 [num_rows_local, …]: the sparse optimizer's state of this rank's rows.
        lr: learning rate in the last step.
        techniques: what `adopt` took, and with it `cache`, `buffer`, `reader`, `window` (None: gradients do not wait),
            `hot_sync` and `cold_sync`.
        access_counter: of the steps since the hot rows were chosen; None if they are never chosen anew.
        staleness: of the rows that copies gave so far.
        no_rows: the plan of nothing.
    """

    def __init__(
        self,
        communicator: Communicator,
        store: EmbeddingStore,
        optimizer: SparseOptimizer,
        lr: float,
        device: torch.device,
        counters: Counter[str],
        counts_accesses: bool,
    ):
        """`adopt` must follow.

        Args:
            device: of the model and the cache.
            counters: what is sent is counted there.
            counts_accesses: whether to have an access counter.
        """
        self._communicator = communicator
        self._optimizer = optimizer
        self._device = device
        self._counters = counters
        self._first_nid, self._stop_nid = store.offsets[communicator.rank : communicator.rank + 2].tolist()
        num_nodes = int(store.offsets[-1])
        self.store = store
        self.state = optimizer.allocate_state(len(store.records))
        self.lr = lr
        self._aggregator = Aggregator(len(store.records), store.dim)
        self.cache = DeviceCache(num_nodes, store.dim, optimizer, device)
        self.access_counter = AccessCounter(num_nodes) if counts_accesses else None
        self.staleness = StalenessRecord()
        self.no_rows = plan_access(np.empty(0, np.int64), store.offsets)

    def adopt(self, techniques: Techniques) -> None:
        """Collective: use these techniques from now on. All rows must be up to date: nothing waits, nothing is hot."""
        self.techniques = techniques
        self._load_cache(techniques.hot_nids)
        self.buffer = StalenessBuffer(techniques.buffer_rows, self.store.dim, self.staleness)
        self.window = None
        if techniques.window_steps > 1:
            self.window = GradientWindow(techniques.window_steps, techniques.window_rows, self.store.dim)
        self.reader = RowReader(
            self.store,
            self._communicator.is_near,
            self.cache,
            self.buffer,
            self.staleness,
            techniques.hotness,
            techniques.max_steps,
            techniques.max_missed_updates,
            self._device,
        )
        common = (self._communicator, self.store.dim, techniques.sums_on_host, self._counters)
        self.hot_sync = HotSync(techniques.hot_sync, len(techniques.hot_nids), *common)
        offsets = self.store.offsets
        self.cold_sync = ColdSync("cold", techniques.cold_sync, offsets, *common, carries_far=self.window is None)
        self._far_sync = self.cold_sync
        if self.window is not None:
            self._far_sync = ColdSync("far", techniques.cold_sync, offsets, *common, carries_near=False)

    def send(self, nids: np.ndarray, grads: np.ndarray) -> Callable[[], list[Segment]]:
        """Collective, does not wait for other hosts: gradients [n, dim] of other hosts' rows; see ColdSync.start."""
        return self._far_sync.start(self.no_rows, grads, plan_access(nids, self.store.offsets), grads)

    def sum(self, segments: list[Segment]) -> list[Segment]:
        """Gradients of this rank's rows, one a row; the first segment holds distinct rows and may be changed."""
        return self._aggregator.sum(segments[0], segments[1:])

    def update(self, summed: Iterable[Segment]) -> None:
        """Let the optimizer change this rank's rows, by `sum`s, once each."""
        records, state = torch.from_numpy(self.store.records), torch.from_numpy(self.state)
        for segment in summed:
            self._optimizer.step(records, state, segment, self.lr)

    def apply_waiting(self) -> None:
        """Collective: send every gradient that waits, and update this rank's rows by what comes."""
        if self.window is not None:
            self.update(self.sum(self.send(*self.window.drain())()))

    def apply(self, gradients: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Update the rows nids [n] that this rank owns by gradients [n, dim]; pairs of both, the same on every rank."""
        dim = self.store.dim
        segments = [Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, dim), np.float32))]
        for nids, grads in gradients:
            own = np.flatnonzero((nids >= self._first_nid) & (nids < self._stop_nid))
            segments.append(Segment((nids[own] - self._first_nid).astype(np.int32), own, grads))
        self.update(self.sum(segments))

    def write_back(self) -> None:
        """Put the hot rows that this rank owns back into its shard, where nobody reads them while they are hot."""
        nids, records, state = self.cache.owned(self._first_nid, self._stop_nid)
        self.store.records[nids - self._first_nid] = records
        self.state[nids - self._first_nid] = state

    def waiting(self) -> dict[str, dict[str, np.ndarray]]:
        """All that waits between two steps, as arrays by name and kind, for a checkpoint."""
        waiting = {"buffer": self.buffer.state()}
        if self.window is not None:
            waiting["window"] = self.window.state()
        if self.reader.prefetched is not None:
            waiting["prefetched"] = self.reader.prefetched.state()
        if self.access_counter is not None:
            waiting["counted"] = self.access_counter.state()
        return waiting

    def load_waiting(self, waiting: dict[str, dict[str, np.ndarray]]) -> None:
        """Take over what `waiting` gave, from a table with the same techniques."""
        self.buffer.load_state(waiting["buffer"])
        if self.window is not None:
            self.window.load_state(waiting["window"])
        if "prefetched" in waiting:
            self.reader.prefetched = Prefetched.of_state(waiting["prefetched"])
        if "counted" in waiting and self.access_counter is not None:
            self.access_counter.load_state(waiting["counted"])

    def _load_cache(self, hot_nids: np.ndarray) -> None:
        """Collective: replicate rows, with their state, from their owners."""
        own = hot_nids[(hot_nids >= self._first_nid) & (hot_nids < self._stop_nid)] - self._first_nid
        records = allgather_rows(self._communicator.world, self.store.records[own])
        state = allgather_rows(self._communicator.world, self.state[own])
        self.cache.load(hot_nids, records, state)
