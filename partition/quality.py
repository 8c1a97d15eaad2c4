"""How good a partition is: edge cut, balance and replication, from counts that each part gives alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glpilot.data.part import Part


@dataclass(frozen=True)
class PartCounts:
    """What one part adds to the quality of the whole.

    Attributes:
        num_nodes: nodes that it owns.
        num_edges: in-edges of those, as stored.
        num_train_nodes: training nodes that it owns.
        num_cut_edges: in-edges whose source another part owns, as stored.
        num_remote_sources: distinct nodes of other parts which are sources of its in-edges.
    """

    num_nodes: int
    num_edges: int
    num_train_nodes: int
    num_cut_edges: int
    num_remote_sources: int


def count_part(part: Part, num_nodes_global: int) -> PartCounts:
    """Count what one part holds and what it needs of others."""
    stop_nid = part.start_nid + part.nodes.num_nodes
    is_remote = (part.indices < part.start_nid) | (part.indices >= stop_nid)
    is_source = np.zeros(num_nodes_global, dtype=bool)
    is_source[part.indices] = True
    is_source[part.start_nid : stop_nid] = False
    return PartCounts(
        num_nodes=part.nodes.num_nodes,
        num_edges=len(part.indices),
        num_train_nodes=int(np.count_nonzero(part.nodes.train_mask)),
        num_cut_edges=int(np.count_nonzero(is_remote)),
        num_remote_sources=int(np.count_nonzero(is_source)),
    )


def edge_cut(counts: list[PartCounts], is_directed: bool) -> int:
    """Edges whose ends lie in different parts; an undirected edge, stored twice, counts once."""
    num_stored = sum(count.num_cut_edges for count in counts)
    return num_stored if is_directed else num_stored // 2


def balance(counts: list[PartCounts]) -> dict[str, float]:
    """The largest part over the mean part in nodes, in-edges and training nodes; 1 where there are none."""
    return {
        name: _largest_over_mean([getattr(count, f"num_{name}") for count in counts])
        for name in ("nodes", "edges", "train_nodes")
    }


def replication(counts: list[PartCounts]) -> float:
    """Parts that own a node or have it as a source of an in-edge, mean over nodes."""
    num_nodes = sum(count.num_nodes for count in counts)
    return 1 + sum(count.num_remote_sources for count in counts) / num_nodes


def _largest_over_mean(sizes: list[int]) -> float:
    return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else 1.0
