"""P3's training step (Gandhi and Iyer, OSDI 2021): the table is split by dimension, not by node.

Each rank computes the first layer of every rank's batch on its own columns of the inputs. The structure of first
layers, their partial sums and the gradients of these cross the network (exchange.py); rows and their gradients never
do. All that comes after the first layer is data-parallel.
"""

from __future__ import annotations

from dataclasses import dataclass

import dgl
import numpy as np
import torch
import torch.nn.functional as F
from mpi4py import MPI
from torch import Tensor

from glpilot.app.config.keys import Config
from glpilot.app.embedding.gradients.aggregate import Aggregator
from glpilot.app.embedding.rows.columns import ColumnTable, column_bounds, rows_to_columns
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.techniques import Techniques
from glpilot.app.graph.dataset import Dataset
from glpilot.app.models.gnn import loss_sum
from glpilot.app.runtime.agreement import AgreedError
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training.batch import PreparedBatch, gradient_of
from glpilot.app.training.p3.exchange import FirstStructure, allgather_gradients, allgather_structures, start_partials
from glpilot.app.training.step import Trainer


@dataclass
class FirstLayer:
    """The first layers of all ranks' batches, computed on this rank's columns.

    Attributes:
        nids: of each rank's batch, integers [num_inputs].
        inputs: of each rank's batch, float32 [num_inputs, width], the embedding columns, which get gradients.
        partials: of each rank's batch, see GNN.first_partial.
        received: float32 [num_ranks, rows, width], the partials of this rank's own batch, by the rank they come from.
        request: complete when they are here.
        generator_state: of torch's generator after this batch's input dropout.
    """

    nids: list[np.ndarray]
    inputs: list[Tensor]
    partials: list[Tensor]
    received: np.ndarray
    request: MPI.Request
    generator_state: Tensor

    def sums(self) -> Tensor:
        """Waits for the other ranks' partials."""
        self.request.Wait()
        total = self.received[0]
        for partial in self.received[1:]:
            total += partial
        return torch.from_numpy(total)


class P3Trainer(Trainer):
    """Trains as Trainer does, on columns of all rows.

    While training, the rows of the base class are out of date; `write_back` brings them up to date.
    """

    def __init__(self, communicator: Communicator, config: Config, dataset: Dataset):
        """Collective.

        Raises:
            AgreedError: there are fewer columns than ranks.
        """
        self._columns: ColumnTable | None = None
        self._ahead: FirstLayer | None = None
        super().__init__(communicator, config, dataset)
        self._feature_columns = np.empty((dataset.book.num_nodes, 0), np.float32)
        if self.inputs.features is not None:
            bounds = np.maximum(self._bounds - self._embedding_dim, 0)
            features = rows_of(self.inputs.features.records)
            self._feature_columns = rows_to_columns(communicator.world, dataset.offsets, bounds, features)
        self._input_columns = torch.arange(*self._bounds[communicator.rank :][:2], device=self.device)

    @property
    def _embedding_dim(self) -> int:
        """The first columns of the inputs are the embedding's, the others the features'."""
        return self.inputs.embeddings.dim if self.inputs.embeddings is not None else 0

    @property
    def _bounds(self) -> np.ndarray:
        """Rank r holds the input columns bounds[r] … bounds[r + 1] - 1."""
        width, size = self.inputs.width, self._communicator.size
        if width < size:
            raise AgreedError(
                f"embedding.dim: expected at least as many input columns as ranks, {size}, with embedding.split "
                f"dimension, got {width}"
            )
        return column_bounds(width, size)

    @property
    def looks_ahead(self) -> bool:
        return self._config.embedding.pipeline

    def adopt(self, techniques: Techniques) -> None:
        """Collective: take the rows as they are now; the techniques are off in this mode."""
        super().adopt(techniques)
        assert self.table is not None
        if self._columns is None:
            bounds = np.minimum(self._bounds, self._embedding_dim)
            optimizer_name = self._config.embedding.optimizer
            self._columns = ColumnTable(self._communicator.world, self._dataset.offsets, bounds, optimizer_name)
            self._aggregator = Aggregator(self._dataset.book.num_nodes, self._columns.width)
        self._columns.load(self.table.store.records, self.table.state)

    def write_back(self) -> None:
        """Collective: put the columns back into the rows of their owners."""
        if self._ahead is not None:  # so that a run resumed from here has nothing under way either
            self._ahead.request.Wait()
            self._ahead = None
        if self._columns is not None and self.table is not None:
            self._columns.store(self.table.store.records, self.table.state)

    def step(
        self, prepared: PreparedBatch, next_prepared: PreparedBatch | None, num_seeds_global: int, lr_scale: float
    ) -> float:
        """Collective: one step on the batches of all ranks; returns the global loss, the mean over all their seeds.

        Args:
            next_prepared: the next step's batch, whose first layer is then computed here and sums up while this
                step goes on, from weights and rows that lack this step's update; None on all ranks for none.
        """
        clock, batch = self.clock, prepared.batch

        # Every rank's first layer on these columns, and this batch's from all ranks.
        first = self._ahead if self._ahead is not None else self._start_first_layer(prepared)
        sums = first.sums().to(self.device).requires_grad_()
        clock.lap("fetch")
        self._ahead = self._start_first_layer(next_prepared) if next_prepared is not None else None

        # The other layers, data-parallel.
        _set_generator_state(first.generator_state, self.device)
        blocks = [block.to(self.device) for block in batch.blocks]
        labels = self._dataset.labels_of(batch.seeds).to(self.device)
        loss = loss_sum(self.model.forward_from_first(blocks, sums), labels) / num_seeds_global
        clock.lap("forward")
        self.dense_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        clock.lap("backward")

        # Everybody's gradients of the sums go to everybody, and from there to rows and first-layer weights.
        grads = self._gather_gradients(gradient_of(sums), first)
        clock.lap("sync_sparse")
        torch.autograd.backward(first.partials, grads)
        clock.lap("backward")
        global_loss = self._dense_sync.start(loss)()
        clock.lap("sync_dense")

        # Write: every rank its columns of all rows that any batch touched, the same rows on every rank.
        if self._columns is not None and self.table is not None:
            segments = [
                Segment(nids.astype(np.int32), np.arange(len(nids)), gradient_of(x).cpu().numpy())
                for nids, x in zip(first.nids, first.inputs)
            ]
            self.table.lr = self._config.embedding.lr * lr_scale
            self._columns.update(self._aggregator.sum(segments[0], segments[1:]), self.table.lr)
        self._update_model(lr_scale)
        clock.lap("update")
        self.counters.update(steps=1, input_rows=len(batch.input_nids), owned_rows=len(batch.input_nids))
        self._count_dense()
        return global_loss

    def _start_first_layer(self, prepared: PreparedBatch) -> FirstLayer:
        """Collective: hand this batch's first layer to everybody, compute all of them; does not wait for the sums."""
        rank, size = self._communicator.rank, self._communicator.size
        structures, num_bytes = allgather_structures(self._communicator.world, _structure_of(prepared))
        self.counters["fetch_bytes"] += num_bytes
        blocks = [self._make_block(structure) for structure in structures]
        self.clock.lap("fetch")
        inputs: list[Tensor] = [torch.empty(0)] * size
        partials: list[Tensor] = [torch.empty(0)] * size
        for other in sorted(range(size), key=lambda other: other == rank):  # ours last: its dropout goes on afterwards
            torch.manual_seed(structures[other].dropout_seed)
            inputs[other], x = self._inputs_of(structures[other].nids)
            partials[other] = self.model.first_partial(blocks[other], x, self._input_columns)
        generator_state = _generator_state(self.device)
        self.clock.lap("forward")
        outgoing = [partial.detach().cpu().numpy() for partial in partials]
        received, request = start_partials(self._communicator.world, outgoing)
        self.counters["fetch_bytes"] += received.nbytes - outgoing[rank].nbytes
        self.clock.lap("fetch")
        return FirstLayer(
            [structure.nids for structure in structures], inputs, partials, received, request, generator_state
        )

    def _make_block(self, structure: FirstStructure) -> dgl.DGLGraph:
        indptr, indices = torch.from_numpy(structure.indptr), torch.from_numpy(structure.indices)
        num_dst_nodes = structure.num_dst_nodes
        content = ("csc", (indptr, indices, torch.empty(0, dtype=torch.int32)))
        block = dgl.create_block(
            content, num_src_nodes=len(structure.nids), num_dst_nodes=num_dst_nodes, idtype=torch.int32
        )
        if self.model.needs_degrees:
            degrees = torch.from_numpy(self._dataset.topology.in_degrees(structure.nids).astype(np.float32))
            block.srcdata["degree"] = degrees
            block.dstdata["degree"] = degrees[:num_dst_nodes]
        return block.to(self.device)

    def _inputs_of(self, nids: np.ndarray) -> tuple[Tensor, Tensor]:
        """Of one batch the embedding columns, and all of the inputs' columns here with dropout, for the model."""
        pieces = []
        rows = torch.empty((len(nids), 0))
        if self._columns is not None:
            rows = torch.from_numpy(self._columns.gather(nids)).to(self.device).requires_grad_()
            pieces.append(rows)
        if self._feature_columns.shape[1]:
            pieces.append(torch.from_numpy(self._feature_columns[nids]).to(self.device))
        x = torch.cat(pieces, dim=1) if pieces else rows.to(self.device)
        dropout = self._config.model.dropout
        if dropout:  # the mask of whole rows, as every other mode draws it
            mask = F.dropout(torch.ones((len(nids), self.inputs.width), device=self.device), dropout)
            x = x * mask[:, self._input_columns]
        return rows, x

    def _gather_gradients(self, grad: Tensor, first: FirstLayer) -> list[Tensor]:
        """Collective: the gradients of every batch's sums, shaped like its partials."""
        num_rows = [len(partial) for partial in first.partials]
        gathered = allgather_gradients(self._communicator.world, grad.cpu().numpy(), num_rows)
        self.counters["sparse_sync_bytes"] += 4 * grad.numel() * (self._communicator.size - 1)
        return [torch.from_numpy(piece).to(self.device) for piece in gathered]


def _structure_of(prepared: PreparedBatch) -> FirstStructure:
    block = prepared.batch.blocks[0]
    indptr, indices = (tensor.numpy().astype(np.int32) for tensor in block.adj_tensors("csc")[:2])
    return FirstStructure(prepared.batch.input_nids, indptr, indices, block.num_dst_nodes(), prepared.dropout_seed)


def _generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_generator_state(state: Tensor, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
