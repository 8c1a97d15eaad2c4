"""Which part owns which node: by METIS, at random, by ranges of rows, or as a file says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from glpilot.data.errors import UserError
from glpilot.data.graph import Graph
from glpilot.data.importers.arrays import read_array

from .metis import partition_by_metis

METHODS = ("metis", "random", "range")


def assign(graph: Graph, num_parts: int, method: str = "metis", seed: int = 1) -> np.ndarray:
    """The part of every node, int32 [num_nodes], by one of METHODS or from a .npy file.

    Only "random" uses the seed: METIS draws from a fixed seed of its own, which DGL gives no access to.

    Raises:
        UserError: the parts are fewer than one or more than the nodes, or no such method, or a bad file.
    """
    check_num_parts(num_parts, graph.num_nodes)
    check_method(method)
    if method == "metis":
        return assign_by_metis(graph, num_parts)
    if method == "random":
        return assign_at_random(graph.num_nodes, num_parts, seed)
    if method == "range":
        return assign_by_range(graph.num_nodes, num_parts)
    return read_assignment(Path(method), graph.num_nodes, num_parts)


def check_num_parts(num_parts: int, num_nodes: int | None = None) -> None:
    if num_parts < 1:
        raise UserError(f"--parts: expected at least 1, found {num_parts}")
    if num_nodes is not None and num_parts > num_nodes:
        raise UserError(f"--parts: expected at most one part a node, found {num_parts} parts for {num_nodes} nodes")


def check_method(method: str) -> None:
    if method not in METHODS and not method.endswith(".npy"):
        raise UserError(f"--method: expected {', '.join(METHODS)} or the name of a .npy file, found {method!r}")


def assign_by_range(num_nodes: int, num_parts: int) -> np.ndarray:
    """Consecutive rows of the graph to each part; sizes differ by one at most."""
    return (np.arange(num_nodes, dtype=np.int64) * num_parts // num_nodes).astype(np.int32)


def assign_at_random(num_nodes: int, num_parts: int, seed: int) -> np.ndarray:
    """Parts drawn without regard to the edges; sizes differ by one at most.

    Raises:
        UserError: the seed is negative.
    """
    if seed < 0:
        raise UserError(f"--seed: expected a number from 0, found {seed}")
    return np.random.default_rng(seed).permutation(assign_by_range(num_nodes, num_parts))


def assign_by_metis(graph: Graph, num_parts: int) -> np.ndarray:
    """Few edges between parts, by METIS; the same graph always gets the same parts, and none stays empty.

    Balances four sums at once: the training and the other nodes, and the in-edges of both.
    """
    if num_parts == 1:
        return np.zeros(graph.num_nodes, dtype=np.int32)
    indptr, indices = _without_loops(graph)
    part_id = partition_by_metis(indptr, indices, graph.nodes.train_mask.astype(np.int8), num_parts)
    return fill_empty_parts(part_id, num_parts)


def fill_empty_parts(part_id: np.ndarray, num_parts: int) -> np.ndarray:
    """Give each part without nodes the last node of the part that is largest then.

    METIS leaves parts empty where there are nearly as many of them as nodes.
    """
    part_id = part_id.copy()
    sizes = np.bincount(part_id, minlength=num_parts)
    for empty in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        part_id[np.flatnonzero(part_id == largest)[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] += 1
    return part_id


def read_assignment(path: Path, num_nodes: int, num_parts: int) -> np.ndarray:
    """The part of every row of the graph from an integer array [num_nodes] in a .npy file; parts may be empty.

    Raises:
        UserError: no such file, or not an array of that kind, or a part beyond 0 … num_parts - 1.
    """
    part_id = read_array(path)
    if part_id.dtype.kind not in "iu" or part_id.shape != (num_nodes,):
        raise UserError(
            f"{path}: expected integers [{num_nodes}], a part for every node of the graph; "
            f"found {part_id.dtype} {list(part_id.shape)}"
        )
    if part_id.min() < 0 or part_id.max() >= num_parts:
        raise UserError(
            f"{path}: expected parts from 0 to {num_parts - 1}, found {part_id.min()} to {part_id.max()}; "
            "mend the file or change --parts"
        )
    return part_id.astype(np.int32)


def _without_loops(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices), edges from a node to itself left out."""
    targets = np.repeat(np.arange(graph.num_nodes, dtype=graph.indices.dtype), np.diff(graph.indptr))
    is_loop = graph.indices == targets
    if not is_loop.any():
        return graph.indptr, graph.indices
    num_loops = np.bincount(targets[is_loop], minlength=graph.num_nodes)
    indptr = graph.indptr - np.concatenate(([0], np.cumsum(num_loops)))
    return indptr, graph.indices[~is_loop]
