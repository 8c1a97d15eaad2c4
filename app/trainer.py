"""One training step, in order: who reads, who talks to whom, who writes."""
from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from glpilot.app.clock import StageClock
from glpilot.app.comm import Communicator, agreement
from glpilot.app.config import Config
from glpilot.app.dataset import Dataset
from glpilot.app.embedding.aggregate import Aggregator
from glpilot.app.embedding.optim import SparseOptimizer
from glpilot.app.embedding.plan import AccessPlan, plan_access
from glpilot.app.embedding.sync import DenseSync, RowSync, choose_cold_sync
from glpilot.app.inputs import NodeInputs
from glpilot.app.models import build_model
from glpilot.app.models.gnn import loss_sum
from glpilot.app.sampler import Batch, NeighborSampler
from glpilot.data.errors import UserError


class Trainer:
    """The learnable state of a run (model, rows, their optimizers) and the step that improves it.

    Attributes:
        inputs: embedding rows and features of all ranks.
        row_state: float32 [num_rows_local, …]: the sparse optimizer's state of this rank's rows.
        counters: rows and bytes of this rank so far, by kind.
    """

    def __init__(self, communicator: Communicator, config: Config, dataset: Dataset):
        """Collective. Draws the model's weights and the rows from `train.seed`."""
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
        self._aggregator = Aggregator(num_rows, config.embedding.dim)
        kind = choose_cold_sync(config.sync.cold, communicator.size)
        self._row_sync = RowSync(kind, communicator.rank, communicator.size)
        self._dense_sync = DenseSync(self._parameters, communicator.size)
        self._sampler = NeighborSampler(dataset.topology, config.sampler.fanouts)
        self.clock = StageClock()
        self.counters: Counter[str] = Counter()

    def sample(self, seeds: np.ndarray, epoch: int, step: int) -> Batch:
        """Sample a step's neighbourhoods; waits for nobody."""
        key = (self._config.train.seed, epoch, step, self._communicator.rank)
        batch = self._sampler.sample(seeds, key)
        torch.manual_seed(int(np.random.SeedSequence((*key, 1)).generate_state(1)[0]))  # of dropout
        self.clock.lap("sample")
        return batch

    def step(self, batch: Batch, num_seeds_global: int, lr_scale: float) -> float:
        """Collective: one step on the batches of all ranks; returns the global loss, the mean over all their seeds.

        Ends while owners may still be writing: `finish_step` must come before the next step.
        """
        embeddings, clock = self.inputs.embeddings, self.clock
        plan = plan_access(batch.input_nids, self._dataset.offsets)

        # Read: rows of this host are loaded while those of other hosts are on their way.
        fetches = [(store, store.start_fetch(plan)) for store in self.inputs.stores]
        clock.lap("gather")
        for store, fetch in fetches:
            store.finish_fetch(fetch)
        clock.lap("fetch")

        # Compute: the derivative of this rank's share of the global loss.
        pieces = [torch.from_numpy(fetch.rows).to(self.device) for _, fetch in fetches]
        pieces[0].requires_grad_(embeddings is not None)
        x = torch.cat(pieces, dim=1) if len(pieces) > 1 else pieces[0]
        blocks = [block.to(self.device) for block in batch.blocks]
        labels = self._dataset.labels_of(batch.seeds).to(self.device)
        loss = loss_sum(self.model(blocks, x), labels) / num_seeds_global
        clock.lap("forward")
        self.dense_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clock.lap("backward")

        # Talk: all ranks meet here; none writes before all have read.
        finish_dense = self._dense_sync.start(loss)
        if embeddings is not None:
            finish_rows = self._row_sync.start(plan, pieces[0].grad.cpu().numpy())
            clock.lap("aggregate")
            segments = finish_rows()
            clock.lap("sync_sparse")
            row_ids, grads = self._aggregator.sum(segments)
            clock.lap("aggregate")

            # Write: every owner its own rows, once.
            self.row_optimizer.step(
                *map(torch.from_numpy, (embeddings.records, self.row_state, row_ids, grads)),
                lr=self._config.embedding.lr * lr_scale,
            )
            embeddings.start_publishing()
            clock.lap("update")
        global_loss = finish_dense()
        clock.lap("sync_dense")
        for group in self.dense_optimizer.param_groups:
            group["lr"] = self._config.train.lr * lr_scale
        self.dense_optimizer.step()
        clock.lap("update")
        self._count(plan)
        return global_loss

    def finish_step(self) -> None:
        """Collective: waits until every owner has written, so that rows may be read again."""
        if self.inputs.embeddings is not None:
            self.inputs.embeddings.finish_publishing()
        self.clock.lap("wait")

    def free(self) -> None:
        """Collective."""
        self.inputs.free()

    def _count(self, plan: AccessPlan) -> None:
        num_owned = plan.count(self._communicator.rank)
        num_fetched = len(plan) - num_owned
        record_bytes = 4 * (self._config.embedding.dim + 1)
        self.counters.update(
            steps=1,
            input_rows=len(plan),
            owned_rows=num_owned,
            fetched_rows=num_fetched,
            fetch_bytes=num_fetched * sum(4 * (store.dim + 1) for store in self.inputs.stores),
            dense_sync_bytes=self._dense_sync.num_bytes if self._communicator.size > 1 else 0,
        )
        if self.inputs.embeddings is not None:
            self.counters.update(sparse_sync_bytes=self._row_sync.num_rows_sent(plan) * record_bytes)


def choose_device(setting: str, host_rank: int) -> torch.device:
    """The device of a rank: the ranks of a host take its GPUs in turn.

    Raises:
        UserError: a GPU is wanted where there is none.
    """
    if setting == "cpu" or (setting == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UserError("run.device: expected a GPU for cuda, found none that torch can use; set cpu or auto")
    return torch.device("cuda", host_rank % torch.cuda.device_count())


def scale_lr(schedule: str, step: int, num_warmup_steps: int, num_steps: int) -> float:
    """The factor on both learning rates in step 0, 1, … of num_steps."""
    if schedule == "constant":
        return 1.0
    if step < num_warmup_steps:
        return (step + 1) / num_warmup_steps
    if schedule == "warmup":
        return 1.0
    progress = (step - num_warmup_steps) / max(1, num_steps - num_warmup_steps)
    return 0.5 * (1 + float(np.cos(np.pi * progress)))
