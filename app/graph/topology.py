"""The whole graph's in-edges, once per host in shared memory, so that sampling needs no network."""

from __future__ import annotations

from pathlib import Path

import dgl
import numpy as np
import torch
from mpi4py import MPI

from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.runtime.host_memory import HostArray
from glpilot.data.errors import UserError
from glpilot.data.part import part_path, read_topology
from glpilot.partition.book import PartitionBook


class Topology:
    """In-edges of all nodes by relabelled nid.

    Attributes:
        indptr: int32 or int64 [num_nodes + 1], shared by the ranks of the host.
        indices: same dtype [num_edges]: source nids.
        graph: the same memory as a DGL graph.
    """

    def __init__(self, communicator: Communicator, book: PartitionBook, folder: Path) -> None:
        """Collective. The ranks of a host read the parts between them.

        Raises:
            AgreedError: a part file is missing, damaged, or does not fit the book.
        """
        host = communicator.host
        dtype = np.int32 if book.dtype_bits == 32 else np.int64
        is_leader = host.Get_rank() == 0
        self._indptr = HostArray(communicator, book.num_nodes + 1 if is_leader else 0, dtype)
        self._indices = HostArray(communicator, book.num_edges if is_leader else 0, dtype)
        self.indptr = self._indptr.segment(0)
        self.indices = self._indices.segment(0)
        self._load(communicator, book, folder)
        self.graph = self._build_graph(book.num_nodes)
        for array in (self.indptr, self.indices):
            array.flags.writeable = False

    def in_degrees(self, nids: np.ndarray) -> np.ndarray:
        """Number of in-edges of each node."""
        return self.indptr[nids + 1] - self.indptr[nids]

    def free(self) -> None:
        """Collective over the ranks of the host."""
        del self.graph, self.indptr, self.indices
        self._indices.free()
        self._indptr.free()

    def _load(self, communicator: Communicator, book: PartitionBook, folder: Path) -> None:
        host = communicator.host
        my_parts = range(host.Get_rank(), book.num_parts, host.Get_size())
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        with agreement(communicator.world):
            for part_id in my_parts:
                parts[part_id] = self._read(book, folder, part_id)
        num_edges = np.zeros(book.num_parts, np.int64)
        for part_id, (_, indices) in parts.items():
            num_edges[part_id] = len(indices)
        host.Allreduce(MPI.IN_PLACE, num_edges)
        first_edge = np.concatenate([[0], np.cumsum(num_edges)])
        with agreement(communicator.world):
            if first_edge[-1] != book.num_edges:
                raise UserError(
                    f"{folder}: the parts hold {first_edge[-1]} edges, book.json says {book.num_edges}; "
                    "run glpilot partition again"
                )
        self.indptr[0] = 0
        for part_id, (indptr, indices) in parts.items():
            start, stop = book.offsets[part_id : part_id + 2]
            self.indptr[start + 1 : stop + 1] = indptr[1:] + first_edge[part_id]
            self.indices[first_edge[part_id] : first_edge[part_id + 1]] = indices
        self._indptr.sync()
        host.Barrier()
        self._indptr.sync()

    @staticmethod
    def _read(book: PartitionBook, folder: Path, part_id: int) -> tuple[np.ndarray, np.ndarray]:
        path = part_path(folder, part_id)
        indptr, indices = read_topology(path)
        num_nodes_local = book.offsets[part_id + 1] - book.offsets[part_id]
        is_sound = (
            len(indptr) == num_nodes_local + 1
            and indptr[0] == 0
            and indptr[-1] == len(indices)
            and (np.diff(indptr) >= 0).all()
            and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < book.num_nodes))
        )
        if not is_sound:
            raise UserError(f"{path}: its edges do not fit book.json; run glpilot partition again")
        return indptr, indices

    def _build_graph(self, num_nodes: int) -> dgl.DGLGraph:
        indptr, indices = torch.from_numpy(self.indptr), torch.from_numpy(self.indices)
        # DGL wraps the shared memory without a copy.
        return dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=indptr.dtype))), num_nodes=num_nodes)
