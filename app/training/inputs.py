"""What enters the first layer: learnable embedding rows, given features, or both side by side."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from glpilot.app.config.keys import Config
from glpilot.app.embedding.rows.plan import AccessPlan
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.embedding.rows.store import EmbeddingStore
from glpilot.app.graph.dataset import Dataset
from glpilot.app.runtime.agreement import AgreedError
from glpilot.app.runtime.communicator import Communicator


class NodeInputs:
    """The stores that a batch's inputs are read from.

    Attributes:
        embeddings: the learnable rows, or None.
        features: the given features as rows that never change, or None.
        width: floats per node that enter the model.
    """

    def __init__(self, communicator: Communicator, config: Config, dataset: Dataset):
        """Collective.

        Raises:
            AgreedError: features are wanted where the graph has none, or the imported rows have another width.
        """
        has_features = dataset.book.num_features > 0
        wanted = config.model.inputs
        if wanted in ("features", "both") and not has_features:
            raise AgreedError(f"model.inputs: got {wanted}, but {dataset.folder} has no features; use embeddings")
        fetch = config.embedding.fetch
        self.embeddings = self.features = None
        if wanted != "features":
            self.embeddings = EmbeddingStore(communicator, dataset.offsets, config.embedding.dim, fetch)
            rows_of(self.embeddings.records)[...] = initial_rows(communicator, config, dataset)
        if has_features and wanted != "embeddings":
            self.features = EmbeddingStore(communicator, dataset.offsets, dataset.book.num_features, fetch)
            rows_of(self.features.records)[...] = dataset.nodes.features
        self.width = sum(store.dim for store in self.stores)
        self.publish()

    @property
    def stores(self) -> list[EmbeddingStore]:
        return [store for store in (self.embeddings, self.features) if store is not None]

    def publish(self) -> None:
        """Collective: make the rows that every rank has written visible to all."""
        for store in self.stores:
            store.start_publishing()
            store.finish_publishing()

    def read(self, plan: AccessPlan) -> Tensor:
        """A batch's inputs, float32 [num_inputs, width]. Collective with two-sided fetches."""
        return torch.cat([torch.from_numpy(store.fetch(plan).rows) for store in self.stores], dim=1)

    def free(self) -> None:
        """Collective."""
        for store in self.stores:
            store.free()


def initial_rows(communicator: Communicator, config: Config, dataset: Dataset) -> np.ndarray:
    """This rank's rows at the start, float32 [num_nodes_local, dim]: the imported ones, or random by part, so that
    they do not depend on the number of ranks."""
    given = dataset.nodes.embeddings
    dim, scale = config.embedding.dim, config.embedding.init_scale
    if given is not None:
        if given.shape[1] != dim:
            raise AgreedError(f"embedding.dim: expected {given.shape[1]}, the width of the imported rows, got {dim}")
        return given
    parts_per_rank = dataset.book.num_parts // communicator.size
    rows = []
    for part_id in range(communicator.rank * parts_per_rank, (communicator.rank + 1) * parts_per_rank):
        num_rows = dataset.book.offsets[part_id + 1] - dataset.book.offsets[part_id]
        uniform = np.random.default_rng((config.train.seed, part_id)).random((num_rows, dim), np.float32)
        rows.append((2 * uniform - 1) * np.float32(scale))
    return np.concatenate(rows)
