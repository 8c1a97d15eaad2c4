"""What a run learns, on one rank: the model, the rows, and their optimizers.

How a step changes it is in step.py and in p3/.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from glpilot.app.config.keys import Config
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.embedding.table import LearnableTable
from glpilot.app.embedding.techniques import Techniques
from glpilot.app.graph.dataset import Dataset
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.models.build import build_model
from glpilot.app.results.checkpoint.snapshot import RowsSnapshot, Snapshot
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.clock import StageClock
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.runtime.device import choose_device
from glpilot.app.training.batch import PreparedBatch
from glpilot.app.training.inputs import NodeInputs
from glpilot.app.training.technique_choice import choose_techniques


class LearnableState:
    """Model, rows and optimizers between steps.

    Attributes:
        device: where the model computes.
        inputs: embedding rows and features of all ranks.
        model, dense_optimizer: the same on every rank.
        table: the embedding rows in training; None where the model reads features alone.
        clock: seconds of this rank so far, by stage.
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
        self.dense_optimizer = torch.optim.Adam(self.model.parameters(), lr=config.train.lr)
        self._sampler = NeighborSampler(dataset.topology, config.sampler.fanouts, self.model.needs_degrees)
        self.clock = StageClock()
        self.counters: Counter[str] = Counter()
        self.table: LearnableTable | None = None
        if self.inputs.embeddings is not None:
            optimizer = SparseOptimizer(config.embedding.optimizer, config.embedding.dim)
            self.table = LearnableTable(
                communicator,
                self.inputs.embeddings,
                optimizer,
                config.embedding.lr,
                self.device,
                self.counters,
                counts_accesses=config.cache.refresh_epochs > 0,
            )
            self.adopt(choose_techniques(communicator, config, dataset.offsets, None, self.device))

    def adopt(self, techniques: Techniques) -> None:
        """Collective: use these techniques from now on. All rows must be up to date, as `settle` leaves them."""
        assert self.table is not None  # the only one that has techniques
        self.table.adopt(techniques)

    def sample(self, seeds: np.ndarray, epoch: int, step_in_epoch: int, step: int) -> PreparedBatch:
        """Sample the neighbourhoods of step 0, 1, … of a run; waits for nobody."""
        key = (self._config.train.seed, epoch, step_in_epoch, self._communicator.rank)
        batch = self._sampler.sample(seeds, key)
        prepared = PreparedBatch(batch, plan_access(batch.input_nids, self._dataset.offsets), step, key)
        self.clock.lap("sample")
        return prepared

    def finish_step(self) -> None:
        """Collective: waits until every owner has written, so that rows may be read again."""
        if self.table is not None:
            self.table.store.finish_publishing()
        self.clock.lap("wait")

    def settle(self) -> None:
        """Collective: apply every gradient that waits, and put the hot rows back, so that all rows are up to date.

        Waits until every owner has written; a step must be finished before.
        """
        if self.table is None:
            return
        self.table.apply_waiting()
        self.clock.lap("aggregate")
        self.write_back()
        self.inputs.publish()

    def write_back(self) -> None:
        """Put what is kept elsewhere while training back into the rows of their owners."""
        if self.table is not None:
            self.table.write_back()

    def snapshot(self) -> Snapshot:
        """What a checkpoint holds of it, after `write_back`; the arrays are not copied."""
        rows = None
        if self.table is not None:
            table = self.table
            rows = RowsSnapshot(table.store.records, table.state, table.lr, table.techniques.digest(), table.waiting())
        return Snapshot(self.model.state_dict(), self.dense_optimizer.state_dict()["state"], rows)

    def free(self) -> None:
        """Collective."""
        self.inputs.free()
