"""One training step, in order: who reads, who talks to whom, who writes."""

from __future__ import annotations

import torch

from glpilot.app.config.keys import Config
from glpilot.app.dense.allreduce import DenseSync
from glpilot.app.embedding.copies.replicas import check_equal
from glpilot.app.graph.dataset import Dataset
from glpilot.app.models.gnn import loss_sum
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training.batch import PreparedBatch, gradient_of
from glpilot.app.training.counts import count_rows
from glpilot.app.training.state import LearnableState


class Trainer(LearnableState):
    """Improves a run's model and rows, step by step."""

    def __init__(self, communicator: Communicator, config: Config, dataset: Dataset):
        """Collective."""
        super().__init__(communicator, config, dataset)
        self._dense_sync = DenseSync(list(self.model.parameters()), communicator.size)

    @property
    def looks_ahead(self) -> bool:
        """Whether `step` makes use of the next batch."""
        return self.table is not None and self.table.techniques.prefetches

    def step(
        self, prepared: PreparedBatch, next_prepared: PreparedBatch | None, num_seeds_global: int, lr_scale: float
    ) -> float:
        """Collective: one step on the batches of all ranks; returns the global loss, the mean over all their seeds.

        Ends while owners may still be writing: `finish_step` must come before the next step.

        Args:
            next_prepared: the next step's batch, to prefetch its rows; None on all ranks for no prefetch.
        """
        table, features, clock = self.table, self.inputs.features, self.clock
        batch, plan, step = prepared.batch, prepared.plan, prepared.step

        # Read: other hosts are asked for rows, and those that are here are put together while they answer.
        reading = table.reader.start(plan, step) if table else None
        feature_fetch = features.start_fetch(plan) if features else None
        clock.lap("gather")
        pieces = []
        if table and reading:
            pieces.append(table.reader.finish(reading, step).requires_grad_())
        if features and feature_fetch:
            features.finish_fetch(feature_fetch)
            pieces.append(torch.from_numpy(feature_fetch.rows).to(self.device))
        clock.lap("fetch")
        if table and next_prepared is not None:
            table.reader.start_prefetch(next_prepared.plan, step)
            clock.lap("gather")

        # Send, while the model computes, the gradients of other hosts' rows that have waited.
        finish_far = table.send(*table.window.take()) if table and table.window is not None else None
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
        if table:
            table.reader.finish_prefetch()
            clock.lap("fetch")

        # Talk: all ranks meet in these operations, so none writes before all have read.
        finish_dense = self._dense_sync.start(loss)
        if table and reading:
            hot_grads, cold_grads = table.reader.gradients(reading, gradient_of(pieces[0]))
            is_near = reading.cold.owned_by(self._communicator.is_near)
            near, far = reading.cold.select(is_near), reading.cold.select(~is_near)
            self.counters["far_gradients"] += len(far)
            if table.window is not None:
                table.window.put(far.nids, far.positions, cold_grads, step)
                far = table.no_rows
            finish_hot = table.hot_sync.start(reading.hot_slots, hot_grads)
            finish_cold = table.cold_sync.start(near, cold_grads, far, cold_grads)
            clock.lap("aggregate")
            cold_segments, hot_segments = finish_cold(), finish_hot()
            if finish_far is not None:
                cold_segments += finish_far()[1:]  # without its own, of which there are none
            clock.lap("sync_sparse")
        global_loss = finish_dense()
        clock.lap("sync_dense")

        # Write: every rank its replicas of the hot rows, every owner its cold rows, once each.
        if table:
            table.lr = self._config.embedding.lr * lr_scale
            table.cache.update(hot_segments, table.lr)
            summed = table.sum(cold_segments)
            clock.lap("aggregate")
            table.update(summed)
            table.store.start_publishing()
        self._update_model(lr_scale)
        clock.lap("update")
        if table and table.access_counter is not None:
            table.access_counter.add(batch.input_nids)
        if table and self._config.cache.check_replicas:
            check_equal(self._communicator.world, table.cache)
        count_rows(self.counters, self._communicator, plan, reading, self.inputs.embeddings, features)
        self._count_dense()
        return global_loss

    def _update_model(self, lr_scale: float) -> None:
        """All ranks alike, since they have the same gradients."""
        for group in self.dense_optimizer.param_groups:
            group["lr"] = self._config.train.lr * lr_scale
        self.dense_optimizer.step()

    def _count_dense(self) -> None:
        self.counters["dense_sync_bytes"] += self._dense_sync.num_bytes_per_step if self._communicator.size > 1 else 0
