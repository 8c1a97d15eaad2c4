"""Small graphs for the tests of partitioning, in which every node's data tells it from every other."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from hypothesis import strategies

from glpilot.data.graph import Graph, NodeData


def make_graph(num_nodes: int, edges, is_directed: bool = False, is_multilabel: bool = False, seed: int = 0) -> Graph:
    """A graph from (source, target) pairs; undirected ones get both directions, and duplicates go."""
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if not is_directed:
        edges = np.concatenate((edges, edges[:, ::-1]))
    sources, targets = np.unique(edges, axis=0).T
    in_edges = scipy.sparse.csc_matrix((np.ones(len(sources)), (sources, targets)), shape=(num_nodes, num_nodes))
    in_edges.sort_indices()
    rng = np.random.default_rng(seed)
    split = rng.integers(0, 4, num_nodes)
    labels = rng.integers(0, 2, (num_nodes, 3)).astype(np.uint8) if is_multilabel else rng.integers(-1, 3, num_nodes)
    nodes = NodeData(
        labels=labels if is_multilabel else labels.astype(np.int32),
        class_names=["red", "green", "blue"],
        train_mask=split == 0,
        val_mask=split == 1,
        test_mask=split == 2,
        original_ids=np.array([f"node {i}" for i in range(num_nodes)], dtype=object),
        features=rng.standard_normal((num_nodes, 2), dtype=np.float32),
        embeddings=rng.standard_normal((num_nodes, 3), dtype=np.float32),
    )
    return Graph(in_edges.indptr.astype(np.int64), in_edges.indices.astype(np.int32), nodes, is_directed)


def planted_graph(num_nodes: int = 600, num_blocks: int = 2, degree: int = 12, seed: int = 0) -> Graph:
    """Blocks of nodes that are mostly joined to their own kind; node v is in block v % num_blocks."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(num_nodes), degree // 2)
    targets = rng.integers(0, num_nodes // num_blocks, len(sources)) * num_blocks + sources % num_blocks
    is_stray = rng.random(len(sources)) < 0.05
    targets[is_stray] = rng.integers(0, num_nodes, int(is_stray.sum()))
    is_loop = sources == targets
    return make_graph(num_nodes, np.stack((sources, targets), axis=1)[~is_loop], seed=seed)


def edge_set(indptr: np.ndarray, indices: np.ndarray, first_nid: int = 0) -> list[tuple[int, int]]:
    """(source, target) of every in-edge, one by one."""
    return [
        (int(source), first_nid + row)
        for row in range(len(indptr) - 1)
        for source in indices[indptr[row] : indptr[row + 1]]
    ]


@strategies.composite
def partitioned_graphs(draw) -> tuple[Graph, np.ndarray, int]:
    """(graph, part_id, num_parts): any small graph in any parts, some of them empty."""
    num_nodes = draw(strategies.integers(1, 12))
    node = strategies.integers(0, num_nodes - 1)
    edges = draw(
        strategies.lists(strategies.tuples(node, node).filter(lambda edge: edge[0] != edge[1]), max_size=30)
        if num_nodes > 1
        else strategies.just([])
    )
    num_parts = draw(strategies.integers(1, 5))
    part_id = draw(strategies.lists(strategies.integers(0, num_parts - 1), min_size=num_nodes, max_size=num_nodes))
    graph = make_graph(
        num_nodes, edges, is_directed=draw(strategies.booleans()), is_multilabel=draw(strategies.booleans())
    )
    return graph, np.array(part_id, dtype=np.int32), num_parts
