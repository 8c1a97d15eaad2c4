"""The GNN's output on full neighbourhoods, layer by layer, over all ranks.

A layer is computed for all nodes before the next begins, and each rank publishes its nodes' hidden vectors in a
store of their own. So a node's neighbourhood is read once per layer, however deep the model is (the idea of
layer-wise inference in GraphSAGE's and DGL's examples).
"""

from __future__ import annotations

from typing import Callable

import numpy as np
import torch
from mpi4py import MPI
from torch import Tensor

from glpilot.app.embedding.rows.plan import AccessPlan, plan_access
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.embedding.rows.store import EmbeddingStore
from glpilot.app.graph.dataset import Dataset
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.models.gnn import GNN
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training.inputs import NodeInputs

CHUNK_EDGES = 400_000


@torch.no_grad()
def infer(
    communicator: Communicator, dataset: Dataset, model: GNN, inputs: NodeInputs, wanted: np.ndarray, fetch: str
) -> np.ndarray:
    """Collective: logits of this rank's wanted nodes.

    Args:
        wanted: bool [num_nodes_local]: whose output to compute in the last layer.
        fetch: how hidden vectors are read, see EmbeddingStore.

    Returns:
        float32 [number wanted, num_classes], ascending by nid.
    """
    was_training = model.training
    model.eval()
    read: Callable[[AccessPlan], Tensor] = inputs.read
    hidden: EmbeddingStore | None = None
    for index, width in enumerate(model.widths):
        is_last = index == len(model.widths) - 1
        nids = dataset.nids_of(wanted if is_last else np.ones_like(wanted))
        if is_last:
            out = np.empty((len(nids), width), np.float32)
            _apply_layer(communicator, dataset, model, index, read, nids, out)
        else:
            store = EmbeddingStore(communicator, dataset.offsets, width, fetch)
            _apply_layer(communicator, dataset, model, index, read, nids, rows_of(store.records))
            store.start_publishing()
            store.finish_publishing()
            read = _reader(store)
        if hidden is not None:
            hidden.free()
        hidden = None if is_last else store
    model.train(was_training)
    return out


def _reader(store: EmbeddingStore) -> Callable[[AccessPlan], Tensor]:
    return lambda plan: torch.from_numpy(store.fetch(plan).rows)


def _apply_layer(
    communicator: Communicator,
    dataset: Dataset,
    model: GNN,
    index: int,
    read: Callable[[AccessPlan], Tensor],
    nids: np.ndarray,
    out: np.ndarray,
) -> None:
    """Collective: fill out [len(nids), width] with a layer's output, in chunks of bounded size."""
    device = next(model.parameters()).device
    sampler = NeighborSampler(dataset.topology, [-1], model.needs_degrees)
    bounds = chunk_bounds(dataset.topology.in_degrees(nids))
    num_chunks = communicator.world.allreduce(len(bounds) - 1, op=MPI.MAX)
    for chunk in range(num_chunks):
        # Ranks that have no chunk left still enter the collectives of those that have.
        start, stop = bounds[min(chunk, len(bounds) - 1)], bounds[min(chunk + 1, len(bounds) - 1)]
        batch = sampler.sample(nids[start:stop], (0,))
        x = read(plan_access(batch.input_nids, dataset.offsets)).to(device)
        if stop > start:
            out[start:stop] = model.layer(index, batch.blocks[0].to(device), x).cpu().numpy()


def chunk_bounds(degrees: np.ndarray, chunk_edges: int = CHUNK_EDGES) -> np.ndarray:
    """Cut nodes into runs of about `chunk_edges` in-edges (a node counts as one): ascending bounds from 0."""
    work = np.cumsum(degrees.astype(np.int64) + 1)
    if len(work) == 0:
        return np.zeros(1, np.int64)
    marks = np.arange(chunk_edges, work[-1], chunk_edges)
    return np.unique(np.concatenate([[0], np.searchsorted(work, marks), [len(work)]]))
