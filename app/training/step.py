"""One training step, in order: who reads, who talks to whom, who writes."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch

from glpilot.app.runtime.clock import StageClock
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.copies.buffer import StalenessBuffer, StalenessRecord
from glpilot.app.embedding.copies.cache import DeviceCache
from glpilot.app.embedding.copies.hotness import AccessCounter
from glpilot.app.embedding.rows.optim import SparseOptimizer
from glpilot.app.embedding.rows.plan import AccessPlan, plan_access
from glpilot.app.embedding.copies.reader import Reading, RowReader
from glpilot.app.embedding.copies.replicas import allgather_rows, check_equal
from glpilot.app.embedding.gradients.sync import ColdSync, DenseSync, HotSync
from glpilot.app.embedding.gradients.window import GradientWindow
from glpilot.app.training.inputs import NodeInputs
from glpilot.app.models import build_model
from glpilot.app.models.gnn import loss_sum
from glpilot.app.graph.sampler import Batch, NeighborSampler
from glpilot.app.training.techniques import Techniques, choose_techniques, uses_prefetch
from glpilot.data.errors import UserError


@dataclass(frozen=True)
class PreparedBatch:
    """A sampled batch with the plan of its rows.

    Attributes:
        step: steps done before it since the start of the run.
        key: of everything random in it.
    """

    batch: Batch
    plan: AccessPlan
    step: int
    key: tuple[int, ...]

    @property
    def dropout_seed(self) -> int:
        """For torch's generator."""
        return int(np.random.SeedSequence((*self.key, 1)).generate_state(1)[0])


class Trainer:
    """The learnable state of a run (model, rows, their optimizers) and the step that improves it.

    Attributes:
        inputs: embedding rows and features of all ranks.
        row_state: float32 [num_rows_local, …]: the sparse optimizer's state of this rank's rows.
        row_lr: learning rate of the rows in the last step.
        techniques: what `adopt` took; with it come `cache`, `buffer`, `window` and `reader`.
        access_counter: of the steps since the hot rows were chosen; None if they are never chosen anew.
        staleness: of the rows that copies gave so far.
        counters: rows and bytes of this rank so far, by kind.
    """

    def __init__(self, communicator: Communicator, config: Config, dataset: Dataset):
        """Collective. Draws the model's weights and the rows from `train.seed`. No technique is on until `adopt`."""
        self._communicator = communicator
        self._config = config
        self._dataset = dataset
        with agreement(communicator.world):
            self.device = choose_device(config.run.device, communicator.host.Get_rank())
        self.inputs = NodeInputs(communicator, config, dataset)
        torch.manual_seed(config.train.seed)
        self.model = build_model(config.model, self.inputs.width, dataset.book.num_classes).to(self.device)
        self._parameters = list(self.model.parameters())
        self.dense_optimizer = torch.optim.Adam(self._parameters, lr=config.train.lr)
        self.row_optimizer = SparseOptimizer(config.embedding.optimizer, config.embedding.dim)
        num_rows = len(dataset.nodes.labels) if self.inputs.embeddings else 0
        self.row_state = self.row_optimizer.allocate_state(num_rows)
        self.row_lr = config.embedding.lr
        self._aggregator = Aggregator(num_rows, config.embedding.dim)
        self._dense_sync = DenseSync(self._parameters, communicator.size)
        self._sampler = NeighborSampler(dataset.topology, config.sampler.fanouts, self.model.needs_degrees)
        self._no_rows = plan_access(np.empty(0, np.int64), dataset.offsets)
        self.access_counter = AccessCounter(dataset.book.num_nodes) if config.cache.refresh_epochs else None
        self.staleness = StalenessRecord()
        self.clock = StageClock()
        self.counters: Counter[str] = Counter()
        self.cache = DeviceCache(dataset.book.num_nodes, config.embedding.dim, self.row_optimizer, self.device)
        self.adopt(choose_techniques(communicator, config, dataset.offsets, None, self.device))

    def adopt(self, techniques: Techniques) -> None:
        """Collective: use these techniques from now on. All rows must be up to date, as `settle` leaves them."""
        self.techniques = techniques
        if self.inputs.embeddings is None:
            return
        config, communicator, store = self._config, self._communicator, self.inputs.embeddings
        dim, sums_on_host = config.embedding.dim, config.aggregation.on_host
        self._load_cache(techniques.hot_nids)
        self.buffer = StalenessBuffer(techniques.buffer_rows, dim, self.staleness)
        self.window = None
        if techniques.window_steps > 1:
            self.window = GradientWindow(techniques.window_steps, techniques.window_rows, dim)
        self.reader = RowReader(
            store, communicator.is_near, self.cache, self.buffer, self.staleness, techniques.hotness,
            config.staleness.max_steps if techniques.buffer_rows else 0, config.staleness.max_missed_updates, self.device,
        )
        self._hot_sync = HotSync(
            techniques.hot_sync, communicator, len(techniques.hot_nids), dim, sums_on_host, self.counters
        )
        common = (techniques.cold_sync, communicator, self._dataset.offsets, dim, sums_on_host, self.counters)
        self._cold_sync = ColdSync("cold", *common, carries_far=self.window is None)
        self._far_sync = ColdSync("far", *common, carries_near=False) if self.window is not None else self._cold_sync

    @property
    def looks_ahead(self) -> bool:
        """Whether `step` makes use of the next batch."""
        return uses_prefetch(self.techniques, self._config, self.device)

    def sample(self, seeds: np.ndarray, epoch: int, step_in_epoch: int, step: int) -> PreparedBatch:
        """Sample the neighbourhoods of step 0, 1, … of a run; waits for nobody."""
        key = (self._config.train.seed, epoch, step_in_epoch, self._communicator.rank)
        batch = self._sampler.sample(seeds, key)
        prepared = PreparedBatch(batch, plan_access(batch.input_nids, self._dataset.offsets), step, key)
        self.clock.lap("sample")
        return prepared

    def step(
        self, prepared: PreparedBatch, next_prepared: PreparedBatch | None, num_seeds_global: int, lr_scale: float
    ) -> float:
        """Collective: one step on the batches of all ranks; returns the global loss, the mean over all their seeds.

        Ends while owners may still be writing: `finish_step` must come before the next step.

        Args:
            next_prepared: the next step's batch, to prefetch its rows; None on all ranks for no prefetch.
        """
        embeddings, features, clock = self.inputs.embeddings, self.inputs.features, self.clock
        batch, plan, step = prepared.batch, prepared.plan, prepared.step

        # Read: other hosts are asked for rows, and those that are here are put together while they answer.
        reading = self.reader.start(plan, step) if embeddings else None
        feature_fetch = features.start_fetch(plan) if features else None
        clock.lap("gather")
        pieces = []
        if embeddings:
            pieces.append(self.reader.finish(reading, step).requires_grad_())
        if features:
            features.finish_fetch(feature_fetch)
            pieces.append(torch.from_numpy(feature_fetch.rows).to(self.device))
        clock.lap("fetch")
        if embeddings and next_prepared is not None:
            self.reader.start_prefetch(next_prepared.plan, step)
            clock.lap("gather")

        # Send, while the model computes, the gradients of other hosts' rows that have waited.
        finish_far = self._send(*self.window.take()) if embeddings and self.window is not None else None
        clock.lap("aggregate")

        # Compute: the derivative of this rank's share of the global loss.
        torch.manual_seed(prepared.dropout_seed)
        x = torch.cat(pieces, dim=1) if len(pieces) > 1 else pieces[0]
        blocks = [block.to(self.device) for block in batch.blocks]
        labels = self._dataset.labels_of(batch.seeds).to(self.device)
        loss = loss_sum(self.model(blocks, x), labels) / num_seeds_global
        clock.lap("forward")
        self.dense_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clock.lap("backward")
        if embeddings:
            self.reader.finish_prefetch()
            clock.lap("fetch")

        # Talk: all ranks meet in these operations, so none writes before all have read.
        finish_dense = self._dense_sync.start(loss)
        if embeddings:
            hot_grads, cold_grads = self.reader.gradients(reading, pieces[0].grad)
            is_near = reading.cold.owned_by(self._communicator.is_near)
            near, far = reading.cold.select(is_near), reading.cold.select(~is_near)
            self.counters["far_gradients"] += len(far)
            if self.window is not None:
                self.window.put(far.nids, far.positions, cold_grads, step)
                far = self._no_rows
            finish_hot = self._hot_sync.start(reading.hot_slots, hot_grads)
            finish_cold = self._cold_sync.start(near, cold_grads, far, cold_grads)
            clock.lap("aggregate")
            cold_segments, hot_segments = finish_cold(), finish_hot()
            if finish_far is not None:
                cold_segments += finish_far()[1:]  # without its own, of which there are none
            clock.lap("sync_sparse")
        global_loss = finish_dense()
        clock.lap("sync_dense")

        # Write: every rank its replicas of the hot rows, every owner its cold rows, once each.
        if embeddings:
            self.row_lr = self._config.embedding.lr * lr_scale
            self.cache.update(hot_segments, self.row_lr)
            self._update_owned(cold_segments)
            embeddings.start_publishing()
        for group in self.dense_optimizer.param_groups:
            group["lr"] = self._config.train.lr * lr_scale
        self.dense_optimizer.step()
        clock.lap("update")
        if self.access_counter is not None:
            self.access_counter.add(batch.input_nids)
        if embeddings and self._config.cache.check_replicas:
            check_equal(self._communicator.world, self.cache)
        self._count(plan, reading)
        return global_loss

    def finish_step(self) -> None:
        """Collective: waits until every owner has written, so that rows may be read again."""
        if self.inputs.embeddings is not None:
            self.inputs.embeddings.finish_publishing()
        self.clock.lap("wait")

    def settle(self) -> None:
        """Collective: apply every gradient that waits, and put the hot rows back, so that all rows are up to date.

        Waits until every owner has written; a step must be finished before.
        """
        if self.inputs.embeddings is None:
            return
        if self.window is not None:
            self._update_owned(self._send(*self.window.drain())())
        self.write_back()
        self.inputs.publish()

    def apply(self, gradients: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Collective: update the owned ones of rows nids [n] by gradients [n, dim], pairs the same on every rank."""
        start, stop = self._dataset.offsets[self._communicator.rank : self._communicator.rank + 2]
        segments = [Segment(np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, self._config.embedding.dim), np.float32))]
        for nids, grads in gradients:
            own = np.flatnonzero((nids >= start) & (nids < stop))
            segments.append(Segment((nids[own] - start).astype(np.int32), own, grads))
        self._update_owned(segments)
        self.inputs.publish()

    def write_back(self) -> None:
        """Put the hot rows that this rank owns back into its shard, where nobody reads them while they are hot."""
        if self.inputs.embeddings is not None:
            start, stop = self._dataset.offsets[self._communicator.rank : self._communicator.rank + 2]
            nids, records, state = self.cache.owned(start, stop)
            self.inputs.embeddings.records[nids - start] = records
            self.row_state[nids - start] = state

    def free(self) -> None:
        """Collective."""
        self.inputs.free()

    def _load_cache(self, hot_nids: np.ndarray) -> None:
        """Collective: replicate rows, with their state, from their owners."""
        start, stop = self._dataset.offsets[self._communicator.rank : self._communicator.rank + 2]
        own = hot_nids[(hot_nids >= start) & (hot_nids < stop)] - start
        records = allgather_rows(self._communicator.world, self.inputs.embeddings.records[own])
        state = allgather_rows(self._communicator.world, self.row_state[own])
        self.cache.load(hot_nids, records, state)

    def _send(self, nids: np.ndarray, grads: np.ndarray) -> Callable[[], list[Segment]]:
        """Collective, does not wait for other hosts: gradients [n, dim] of other hosts' rows; see ColdSync.start."""
        return self._far_sync.start(self._no_rows, grads, plan_access(nids, self._dataset.offsets), grads)

    def _update_owned(self, segments: list[Segment]) -> None:
        """Update this rank's rows; the first segment holds distinct ones and may be changed."""
        summed = self._aggregator.sum(segments[0], segments[1:])
        self.clock.lap("aggregate")
        for segment in summed:
            self.row_optimizer.step(*map(torch.from_numpy, (self.inputs.embeddings.records, self.row_state)), segment, self.row_lr)

    def _count(self, plan: AccessPlan, reading: Reading | None) -> None:
        communicator = self._communicator
        is_near = communicator.is_near
        num_owned = plan.count(communicator.rank)
        num_near = int(np.diff(plan.bounds)[is_near].sum()) - num_owned
        counts = dict(input_rows=len(plan), owned_rows=num_owned, near_rows=num_near, fetched_rows=len(plan) - num_owned - num_near)
        fetch_bytes = 0
        if self.inputs.features is not None:
            fetch_bytes += counts["fetched_rows"] * 4 * (self.inputs.features.dim + 1)
        if reading is not None:
            num_owned = reading.cold.count(communicator.rank)
            num_near = int(np.diff(reading.cold.bounds)[is_near].sum()) - num_owned
            counts.update(
                hot_rows=len(reading.hot_slots), owned_rows=num_owned, near_rows=num_near,
                buffered_rows=reading.num_buffered,
                fetched_rows=len(reading.cold) - num_owned - num_near - reading.num_buffered,
            )
            fetch_bytes += counts["fetched_rows"] * 4 * (self._config.embedding.dim + 1)
        self.counters.update(steps=1, fetch_bytes=fetch_bytes, **counts)
        self.counters["dense_sync_bytes"] += self._dense_sync.num_bytes_per_step if communicator.size > 1 else 0
