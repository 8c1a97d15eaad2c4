"""Adjacency matrices saved by scipy.sparse.save_npz."""

from __future__ import annotations

from pathlib import Path

from ..errors import UserError
from .node_ids import NodeIds
from .source import Source, check_ends
from .text_file import check_file, one_line


def read_scipy(path: Path) -> Source:
    """Read a square sparse matrix of any layout; the element [u, v] is the edge from u to v. Weights are ignored,
    elements stored as zero are no edges.

    Raises:
        UserError: the file is no sparse matrix, or damaged, or the matrix is empty or not square.
    """
    from scipy import sparse

    check_file(path)
    try:
        matrix = sparse.load_npz(path)
        if hasattr(matrix, "check_format"):  # compressed layouts; their conversion trusts the pointers
            matrix.check_format(full_check=True)
        matrix = matrix.tocoo()
    except Exception as error:  # a damaged archive makes numpy and scipy raise whatever they like
        raise UserError(f"{path}: not a sparse matrix of scipy.sparse.save_npz ({one_line(error)})") from error
    num_nodes = matrix.shape[0]
    if matrix.ndim != 2 or num_nodes != matrix.shape[1] or num_nodes == 0:
        raise UserError(f"{path}: expected a square matrix, found shape {list(matrix.shape)}")
    src, dst = matrix.row, matrix.col
    check_ends(src, dst, num_nodes, str(path))
    is_edge = matrix.data != 0
    if not is_edge.all():
        src, dst = src[is_edge], dst[is_edge]
    return Source(NodeIds.consecutive(num_nodes, f"one of 0 … {num_nodes - 1}"), src, dst, str(path))
