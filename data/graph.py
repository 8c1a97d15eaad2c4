"""The whole graph, in memory and as graph.h5."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import schema
from .errors import UserError
from .hdf5 import create_file, open_file, read_attribute, read_dataset, write_dataset


@dataclass(frozen=True)
class NodeData:
    """What is known of a run of nodes; row i of every array belongs to the same node.

    Attributes:
        labels: int32 [num_nodes], -1 where unknown; or uint8 [num_nodes, num_classes] for several labels a node.
        class_names: one name a class.
        train_mask, val_mask, test_mask: bool [num_nodes]; a node is in one of them at most.
        original_ids: int64 [num_nodes], or an object array of str: the ids that the user knows.
        features: float32 [num_nodes, num_features], or None.
        embeddings: float32 [num_nodes, dim] to start the training from, or None.
    """

    labels: np.ndarray
    class_names: list[str]
    train_mask: np.ndarray
    val_mask: np.ndarray
    test_mask: np.ndarray
    original_ids: np.ndarray
    features: np.ndarray | None = None
    embeddings: np.ndarray | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def is_multilabel(self) -> bool:
        return self.labels.ndim == 2

    def take(self, rows: np.ndarray | slice) -> NodeData:
        """The same for some of the nodes, in the order given."""
        return NodeData(
            labels=self.labels[rows],
            class_names=self.class_names,
            train_mask=self.train_mask[rows],
            val_mask=self.val_mask[rows],
            test_mask=self.test_mask[rows],
            original_ids=self.original_ids[rows],
            features=None if self.features is None else self.features[rows],
            embeddings=None if self.embeddings is None else self.embeddings[rows],
        )


def concatenate_nodes(pieces: list[NodeData]) -> NodeData:
    """The nodes of several pieces of the same graph, one after the other."""

    def join(name: str) -> Any:
        arrays = [getattr(piece, name) for piece in pieces]
        return None if arrays[0] is None else np.concatenate(arrays)

    names = ("labels", "train_mask", "val_mask", "test_mask", "original_ids", "features", "embeddings")
    return NodeData(class_names=pieces[0].class_names, **{name: join(name) for name in names})


@dataclass(frozen=True)
class Graph:
    """A graph by its in-edges (compressed sparse columns), with what is known of its nodes.

    Attributes:
        indptr: int64 [num_nodes + 1]; the in-edges of node v are indices[indptr[v]:indptr[v + 1]].
        indices: int32 or int64 [num_edges]: the edges' source nodes, ascending within a node.
        is_directed: false if every edge is stored in both directions.
    """

    indptr: np.ndarray
    indices: np.ndarray
    nodes: NodeData
    is_directed: bool

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Stored edges: an undirected edge counts twice."""
        return len(self.indices)


def graph_hash(graph: Graph) -> str:
    """A digest of structure, labels and masks, which says whether two files speak of the same graph."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (
        graph.indptr,
        graph.indices.astype(np.int64, copy=False),
        graph.nodes.labels,
        graph.nodes.train_mask,
        graph.nodes.val_mask,
        graph.nodes.test_mask,
    ):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write_graph(path: Path, graph: Graph, force: bool = False, origin: str | None = None) -> None:
    """Write graph.h5.

    Args:
        origin: JSON text that says what the graph was made of. Readers may pass over it.

    Raises:
        UserError: the file exists and `force` is false, or it cannot be written.
    """
    with create_file(path, schema.GRAPH_FORMAT, force) as file:
        file.attrs[schema.DIRECTED] = graph.is_directed
        file.attrs[schema.GRAPH_HASH] = graph_hash(graph)
        if origin is not None:
            file.attrs[schema.IMPORT] = origin
        write_dataset(file, schema.INDPTR, graph.indptr)
        write_dataset(file, schema.INDICES, graph.indices)
        write_nodes(file, graph.nodes)


def read_graph(path: Path) -> tuple[Graph, str]:
    """Read graph.h5; returns the graph and its hash.

    Raises:
        UserError: no such file, or damaged, or of another format.
    """
    with open_file(path, schema.GRAPH_FORMAT) as file:
        graph = Graph(
            indptr=read_dataset(file, schema.INDPTR),
            indices=read_dataset(file, schema.INDICES),
            nodes=read_nodes(file),
            is_directed=bool(read_attribute(file, schema.DIRECTED)),
        )
        digest = str(read_attribute(file, schema.GRAPH_HASH))
    check_structure(path, graph)
    return graph, digest


def check_structure(path: Path, graph: Graph) -> None:
    """Refuse arrays that do not describe one graph, as a file may hold that others have written.

    Raises:
        UserError: the lengths or the node ids do not fit together.
    """
    num_nodes = graph.nodes.num_nodes
    if graph.num_nodes != num_nodes or graph.indptr[0] != 0 or (np.diff(graph.indptr) < 0).any():
        raise UserError(f"{path}: '{schema.INDPTR}' should ascend from 0 and have {num_nodes + 1} elements")
    if graph.num_edges != graph.indptr[-1]:
        raise UserError(f"{path}: expected {graph.indptr[-1]} '{schema.INDICES}', found {graph.num_edges}")
    if graph.num_edges and (graph.indices.min() < 0 or graph.indices.max() >= num_nodes):
        raise UserError(f"{path}: '{schema.INDICES}' should be node ids from 0 to {num_nodes - 1}")


def write_nodes(file, nodes: NodeData) -> None:
    """Write the node arrays into an open graph or part file."""
    write_dataset(file, schema.LABELS, nodes.labels)
    write_dataset(file, schema.CLASS_NAMES, np.array(nodes.class_names, dtype=object))
    write_dataset(file, schema.TRAIN_MASK, nodes.train_mask)
    write_dataset(file, schema.VAL_MASK, nodes.val_mask)
    write_dataset(file, schema.TEST_MASK, nodes.test_mask)
    write_dataset(file, schema.ORIGINAL_IDS, nodes.original_ids)
    for name, array in ((schema.FEATURES, nodes.features), (schema.EMBEDDINGS, nodes.embeddings)):
        if array is not None:
            write_dataset(file, name, array)


def read_nodes(file) -> NodeData:
    """Read the node arrays of an open graph or part file."""
    return NodeData(
        labels=read_dataset(file, schema.LABELS),
        class_names=list(read_dataset(file, schema.CLASS_NAMES)),
        train_mask=read_dataset(file, schema.TRAIN_MASK),
        val_mask=read_dataset(file, schema.VAL_MASK),
        test_mask=read_dataset(file, schema.TEST_MASK),
        original_ids=read_dataset(file, schema.ORIGINAL_IDS),
        features=read_dataset(file, schema.FEATURES) if schema.FEATURES in file else None,
        embeddings=read_dataset(file, schema.EMBEDDINGS) if schema.EMBEDDINGS in file else None,
    )
