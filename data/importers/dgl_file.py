"""Graph files saved by dgl.save_graphs. DGL reads them in C++, from its own format: nothing is unpickled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..errors import UserError
from .arrays import check_rows
from .labels import labels_of_array
from .masks import MASK_NAMES, split_of_masks
from .node_ids import NodeIds
from .source import Source, check_ends
from .text_file import check_file

# The first bytes of a DGL graph file; given others, DGL may believe a size and ask for all of the memory.
DGL_MAGIC = (0xDD2E4FF046B4A13F).to_bytes(8, "little")
LABEL_NAMES = ("label", "labels")
FEATURE_NAMES = ("feat", "feature", "features")


def read_dgl(path: Path, marks: tuple[str, ...]) -> Source:
    """Read the one homogeneous graph of a file, and from its node data `label`, `feat`, and `train_mask`,
    `val_mask` and `test_mask`, as far as they are there. Edge data are ignored.

    Args:
        marks: labels that mean that there is none.

    Raises:
        UserError: the file is not DGL's, or damaged, or holds several graphs or node types, or node data of
            another shape than expected.
    """
    check_file(path)
    with open(path, "rb") as file:
        if file.read(len(DGL_MAGIC)) != DGL_MAGIC:
            raise UserError(f"{path}: not a graph file of dgl.save_graphs")
    # Without it DGL asks which framework to use, and writes the answer into the home folder.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl

    try:
        graphs, _ = dgl.load_graphs(str(path))
    except (dgl.DGLError, OSError, ValueError, MemoryError) as error:
        raise UserError(f"{path}: DGL cannot read the file; it is truncated or damaged") from error
    if len(graphs) != 1:
        raise UserError(f"{path}: expected one graph, found {len(graphs)}")
    graph = graphs[0]
    if len(graph.ntypes) != 1 or len(graph.etypes) != 1:
        raise UserError(
            f"{path}: only homogeneous graphs are supported, this one has {len(graph.ntypes)} node types and "
            f"{len(graph.etypes)} edge types; dgl.to_homogeneous makes one of it"
        )
    num_nodes = graph.num_nodes()
    if num_nodes == 0:
        raise UserError(f"{path}: the graph has no nodes")
    src, dst = (ends.numpy() for ends in graph.edges())
    check_ends(src, dst, num_nodes, str(path))
    data = {name: tensor.numpy() for name, tensor in graph.ndata.items()}
    label_name = next((name for name in LABEL_NAMES if name in data), None)
    feature_name = next((name for name in FEATURE_NAMES if name in data), None)
    return Source(
        node_ids=NodeIds.consecutive(num_nodes, f"one of 0 … {num_nodes - 1}"),
        src=src,
        dst=dst,
        given_in=str(path),
        labels=labels_of_array(data[label_name], num_nodes, f"{path}: '{label_name}'", marks) if label_name else None,
        split=_read_split(path, data, num_nodes),
        features=check_rows(data[feature_name], num_nodes, f"{path}: '{feature_name}'") if feature_name else None,
    )


def _read_split(path: Path, data: dict[str, np.ndarray], num_nodes: int):
    if not any(name in data for name in MASK_NAMES):
        return None
    masks = [data.get(name, np.zeros(num_nodes, dtype=bool)) for name in MASK_NAMES]
    return split_of_masks(masks, num_nodes, str(path))
