"""The host's topology without MPI, for the tests of sampling and of models."""

from __future__ import annotations

import dgl
import numpy as np
import torch

from helpers.graphs import make_graph


class StubTopology:
    """What the sampler uses of a topology: in-edges of nodes, as arrays and as a DGL graph."""

    def __init__(self, num_nodes: int, edges, is_directed: bool = False, dtype=np.int64):
        graph = make_graph(num_nodes, edges, is_directed)
        self.num_nodes = num_nodes
        self.indptr = graph.indptr.astype(dtype)
        self.indices = graph.indices.astype(dtype)
        indptr, indices = torch.from_numpy(self.indptr), torch.from_numpy(self.indices)
        self.graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=indptr.dtype))), num_nodes=num_nodes)

    def in_degrees(self, nids: np.ndarray) -> np.ndarray:
        return self.indptr[nids + 1] - self.indptr[nids]

    def sources_of(self, nid: int) -> list[int]:
        return self.indices[self.indptr[nid] : self.indptr[nid + 1]].tolist()

    def dense(self) -> np.ndarray:
        """float64 [num_nodes, num_nodes]: entry (v, u) is 1 if u is a source of v's in-edges."""
        matrix = np.zeros((self.num_nodes, self.num_nodes))
        for nid in range(self.num_nodes):
            matrix[nid, self.sources_of(nid)] = 1
        return matrix


def random_topology(num_nodes: int, num_edges: int, seed: int = 0, **kwargs) -> StubTopology:
    """Random edges among all nodes but the last two, which are isolated."""
    edges = np.random.default_rng(seed).integers(0, num_nodes - 2, (num_edges, 2))
    return StubTopology(num_nodes, edges[edges[:, 0] != edges[:, 1]], **kwargs)
