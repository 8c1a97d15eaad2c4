"""One part of a partitioned graph, as part-00000.h5: the in-edges and the data of the nodes that it owns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import schema
from .graph import NodeData, read_nodes, write_nodes
from .hdf5 import create_file, open_file, read_attribute, read_dataset, write_dataset


@dataclass(frozen=True)
class Part:
    """The nodes start_nid … start_nid + num_nodes_local - 1 of the relabelled graph, and their in-edges.

    Attributes:
        indptr: int64 [num_nodes_local + 1], starting at 0.
        indices: int32 or int64 [num_edges_local]: source nids, in the relabelled numbering of the whole graph.
        graph_nids: int64 [num_nodes_local]: the nodes' rows in graph.h5.
    """

    part_id: int
    num_parts: int
    start_nid: int
    graph_hash: str
    indptr: np.ndarray
    indices: np.ndarray
    graph_nids: np.ndarray
    nodes: NodeData


def part_path(folder: Path, part_id: int) -> Path:
    return Path(folder) / f"part-{part_id:05d}.h5"


def write_part(path: Path, part: Part) -> None:
    """Write a part file, replacing one that is there."""
    with create_file(path, schema.PART_FORMAT) as file:
        file.attrs[schema.PART_ID] = part.part_id
        file.attrs[schema.NUM_PARTS] = part.num_parts
        file.attrs[schema.START_NID] = part.start_nid
        file.attrs[schema.GRAPH_HASH] = part.graph_hash
        write_dataset(file, schema.INDPTR, part.indptr)
        write_dataset(file, schema.INDICES, part.indices)
        write_dataset(file, schema.GRAPH_NIDS, part.graph_nids)
        write_nodes(file, part.nodes)


def read_topology(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read only (indptr, indices) of a part file."""
    with open_file(path, schema.PART_FORMAT) as file:
        return read_dataset(file, schema.INDPTR), read_dataset(file, schema.INDICES)


def read_part(path: Path) -> Part:
    """Read a whole part file.

    Raises:
        UserError: no such file, or damaged, or of another format.
    """
    with open_file(path, schema.PART_FORMAT) as file:
        return Part(
            part_id=int(read_attribute(file, schema.PART_ID)),
            num_parts=int(read_attribute(file, schema.NUM_PARTS)),
            start_nid=int(read_attribute(file, schema.START_NID)),
            graph_hash=str(read_attribute(file, schema.GRAPH_HASH)),
            indptr=read_dataset(file, schema.INDPTR),
            indices=read_dataset(file, schema.INDICES),
            graph_nids=read_dataset(file, schema.GRAPH_NIDS),
            nodes=read_nodes(file),
        )
