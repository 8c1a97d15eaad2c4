"""From an assignment of nodes to parts to new node ids, so that each part owns one contiguous range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glpilot.data.graph import Graph


@dataclass(frozen=True)
class Relabelling:
    """The same permutation of the nodes, both ways.

    Attributes:
        offsets: int64 [num_parts + 1]; part p owns the nids offsets[p] … offsets[p + 1] - 1.
        graph_nids: int64 [num_nodes]: the row in the graph of every nid, ascending within a part.
        nids: int32 or int64 [num_nodes]: the nid of every row of the graph.
    """

    offsets: np.ndarray
    graph_nids: np.ndarray
    nids: np.ndarray

    def rows_of(self, part_id: int) -> np.ndarray:
        """The rows of the graph that a part owns, int64 [num_nodes_local], in the order of their nids."""
        return self.graph_nids[self.offsets[part_id] : self.offsets[part_id + 1]]


def index_bits(num_nodes: int, num_edges: int) -> int:
    """The width that holds every node id and edge position: DGL wants indptr and indices of one type."""
    return 32 if max(num_nodes, num_edges) < 2**31 else 64


def relabel(part_id: np.ndarray, num_parts: int, dtype: type = np.int64) -> Relabelling:
    """Number the nodes part after part; within a part they keep their order in the graph.

    Args:
        part_id: integers [num_nodes] from 0 to num_parts - 1.
        dtype: of the `nids` to come, np.int32 or np.int64.
    """
    # numpy sorts 16-bit keys in linear time.
    key = part_id.astype(np.uint16) if num_parts <= 2**16 else part_id
    graph_nids = np.argsort(key, kind="stable")
    nids: np.ndarray = np.empty(len(part_id), dtype=dtype)
    nids[graph_nids] = np.arange(len(part_id), dtype=dtype)
    offsets = np.zeros(num_parts + 1, dtype=np.int64)
    np.cumsum(np.bincount(part_id, minlength=num_parts), out=offsets[1:])
    return Relabelling(offsets, graph_nids, nids)


def relabel_in_edges(graph: Graph, rows: np.ndarray, nids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The in-edges of some nodes of the graph, by the new ids of their sources.

    Args:
        rows: int64 [num_rows], rows of the graph.
        nids: [num_nodes], the new id of every row of the graph.

    Returns:
        indptr int64 [num_rows + 1], and indices [num_edges] of the type of `nids`, ascending within a node.
    """
    degrees = graph.indptr[rows + 1] - graph.indptr[rows]
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(degrees, out=indptr[1:])
    positions = np.arange(indptr[-1]) + np.repeat(graph.indptr[rows] - indptr[:-1], degrees)
    # One flat sort of (node, source) as one number does not move edges from node to node.
    base = np.repeat(np.arange(len(rows), dtype=np.int64) * graph.num_nodes, degrees)
    key = nids[graph.indices[positions]] + base
    key.sort()
    key -= base
    return indptr, key.astype(nids.dtype)
