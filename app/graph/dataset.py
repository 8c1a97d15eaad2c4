"""What a rank trains on: the partition book, the host's topology, and the data of the nodes that the rank owns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from glpilot.app.graph.ownership import rank_offsets
from glpilot.app.graph.topology import Topology
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.data.errors import UserError
from glpilot.data.graph import NodeData, concatenate_nodes
from glpilot.data.part import Part, part_path, read_part
from glpilot.partition.book import PartitionBook, read_book


@dataclass
class Dataset:
    """
    Attributes:
        offsets: int64 [num_ranks + 1]: rank r owns the nids offsets[r] … offsets[r + 1] - 1.
        start_nid: the first nid of this rank.
        nodes: data of this rank's nodes, ascending by nid.
    """

    folder: Path
    book: PartitionBook
    topology: Topology
    offsets: np.ndarray
    start_nid: int
    nodes: NodeData

    def nids_of(self, mask: np.ndarray) -> np.ndarray:
        """The nids of this rank's nodes in a mask [num_nodes_local], ascending."""
        return np.flatnonzero(mask) + self.start_nid

    def labels_of(self, nids: np.ndarray) -> Tensor:
        """Labels of nodes of this rank as the loss wants them: int64 [n], or float32 [n, num_classes]."""
        labels = torch.from_numpy(self.nodes.labels[nids - self.start_nid])
        return labels.float() if self.nodes.is_multilabel else labels.long()

    def free(self) -> None:
        """Collective."""
        self.topology.free()


def load_dataset(communicator: Communicator, folder: Path) -> Dataset:
    """Collective: every rank reads its own parts, the ranks of a host share the topology.

    Raises:
        AgreedError: files missing, damaged or of different partitions; parts not a multiple of the ranks.
    """
    with agreement(communicator.world):
        book = read_book(folder)
        num_ranks = communicator.size
        if book.num_parts % num_ranks:
            raise UserError(
                f"{folder}: expected the number of parts to be a multiple of the ranks, got {book.num_parts} parts and "
                f"{num_ranks} ranks; partition with --parts {num_ranks}, or start another number of ranks"
            )
    with agreement(communicator.world):
        parts_per_rank = book.num_parts // num_ranks
        first_part = communicator.rank * parts_per_rank
        parts = [_read_own_part(book, folder, part_id) for part_id in range(first_part, first_part + parts_per_rank)]
        nodes = concatenate_nodes([part.nodes for part in parts])
        _check_labels(nodes, folder)
    offsets = rank_offsets(book.offsets, num_ranks)
    topology = Topology(communicator, book, folder)
    return Dataset(Path(folder), book, topology, offsets, int(offsets[communicator.rank]), nodes)


def _read_own_part(book: PartitionBook, folder: Path, part_id: int) -> Part:
    path = part_path(folder, part_id)
    part = read_part(path)
    if part.graph_hash != book.graph_hash or part.start_nid != book.offsets[part_id]:
        raise UserError(f"{path}: belongs to another partition than book.json; run glpilot partition again")
    if part.nodes.num_nodes != book.offsets[part_id + 1] - book.offsets[part_id]:
        raise UserError(f"{path}: holds {part.nodes.num_nodes} nodes, unlike book.json; run glpilot partition again")
    features = part.nodes.features
    found = (0 if features is None else features.shape[1], part.nodes.num_classes, part.nodes.is_multilabel)
    expected = (book.num_features, book.num_classes, book.is_multilabel)
    if found != expected:
        raise UserError(
            f"{path}: expected (features, classes, several labels a node) {expected} as in book.json, found {found}; "
            "run glpilot partition again"
        )
    return part


def _check_labels(nodes: NodeData, folder: Path) -> None:
    used = nodes.train_mask | nodes.val_mask | nodes.test_mask
    if not nodes.is_multilabel and used.any():
        labels = nodes.labels[used]
        if labels.min() < 0 or labels.max() >= nodes.num_classes:
            raise UserError(
                f"{folder}: a node of a split has no label in 0 … {nodes.num_classes - 1}; import the graph again"
            )
