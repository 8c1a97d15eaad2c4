"""Write a partition of GLPilot's in the format of DGL's distributed trainer: dgl_partition.py graph.h5 PARTS FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

os.environ.setdefault("DGLBACKEND", "pytorch")

import dgl
import dgl.distributed.partition as dgl_partition
import numpy as np
import torch

from glpilot.data.graph import Graph, read_graph
from glpilot.data.part import part_path, read_part
from glpilot.partition.book import read_book


def part_of_nodes(graph: Graph, parts: Path) -> np.ndarray:
    """The part of each node, int64 [num_nodes], found by the users' own ids."""
    original_ids = np.asarray(graph.nodes.original_ids)
    order = np.argsort(original_ids)
    part_id = np.empty(graph.num_nodes, np.int64)
    for part in range(read_book(parts).num_parts):
        ids = read_part(part_path(parts, part)).nodes.original_ids
        part_id[order[np.searchsorted(original_ids[order], ids)]] = part
    return part_id


def to_dgl(graph: Graph) -> dgl.DGLGraph:
    indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices.astype(np.int64))
    in_edges = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))), num_nodes=graph.num_nodes)
    whole = dgl.graph(in_edges.edges(), num_nodes=graph.num_nodes)
    whole.ndata["labels"] = torch.from_numpy(graph.nodes.labels.astype(np.int64))
    for split in ("train", "val", "test"):
        whole.ndata[f"{split}_mask"] = torch.from_numpy(getattr(graph.nodes, f"{split}_mask"))
    return whole


def main() -> None:
    graph, _ = read_graph(Path(sys.argv[1]))
    parts, folder = Path(sys.argv[2]), sys.argv[3]
    part_id = torch.from_numpy(part_of_nodes(graph, parts))
    # DGL takes no assignment from outside, so its call of METIS is answered with ours.
    with mock.patch.object(dgl_partition, "metis_partition_assignment", lambda *args, **kwargs: part_id):
        dgl.distributed.partition_graph(
            to_dgl(graph), "bench", read_book(parts).num_parts, folder, part_method="metis", num_hops=1
        )


if __name__ == "__main__":
    main()
