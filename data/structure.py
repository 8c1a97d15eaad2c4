"""From a list of edges to the in-edges of a simple graph: no self-loops, no edge twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Structure:
    """The in-edges of a simple graph, and what was left out to make it simple.

    Attributes:
        indptr: int64 [num_nodes + 1].
        indices: int32 [num_edges], or int64 from 2**31 nodes on: source nodes, ascending within a node.
        num_duplicates: edges that were given before; in an undirected graph (v, u) is the same edge as (u, v).
        num_self_loops: edges from a node to itself.
    """

    indptr: np.ndarray
    indices: np.ndarray
    num_duplicates: int
    num_self_loops: int


def simple_csc(src: np.ndarray, dst: np.ndarray, num_nodes: int, directed: bool) -> Structure:
    """Drop self-loops and repeated edges, and sort the rest by destination, then by source.

    Args:
        src, dst: integers [num_given], each in 0 … num_nodes - 1.
        directed: keep each edge as it is; otherwise store it in both directions.
    """
    assert num_nodes * num_nodes < 2**63, "an edge must fit one int64 key"
    keep = src != dst
    num_kept = int(np.count_nonzero(keep))
    num_self_loops = len(src) - num_kept
    if num_self_loops:
        src, dst = src[keep], dst[keep]
    # Sorting one int64 key an edge is several times faster than sorting pairs.
    keys = np.empty(num_kept if directed else 2 * num_kept, dtype=np.int64)
    _write_keys(keys[:num_kept], dst, src, num_nodes)
    if not directed:
        _write_keys(keys[num_kept:], src, dst, num_nodes)
    keys = sorted_unique(keys)
    num_unique = len(keys) if directed else len(keys) // 2

    indptr = np.searchsorted(keys, np.arange(num_nodes + 1, dtype=np.int64) * num_nodes)
    np.remainder(keys, max(num_nodes, 1), out=keys)
    return Structure(
        indptr=indptr.astype(np.int64, copy=False),
        indices=keys.astype(np.int32 if num_nodes < 2**31 else np.int64, copy=False),
        num_duplicates=num_kept - num_unique,
        num_self_loops=num_self_loops,
    )


def sorted_unique(keys: np.ndarray) -> np.ndarray:
    """The distinct values, ascending. Sorts `keys` in place, which np.unique would copy first."""
    keys.sort()
    is_first = np.empty(len(keys), dtype=bool)
    is_first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys if is_first.all() else keys[is_first]


def _write_keys(keys: np.ndarray, major: np.ndarray, minor: np.ndarray, num_nodes: int) -> None:
    np.multiply(major, num_nodes, out=keys, dtype=np.int64)
    keys += minor
