"""Edge lists in CSV: one edge a row, by the users' own ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import UserError
from .csv_table import CsvTable, open_table
from .labels import LABEL_NAMES
from .node_ids import NODE_NAMES, NodeIds, number_ids, read_ids

SRC_NAMES = ("src", "source", "from", "u")
DST_NAMES = ("dst", "target", "destination", "to", "v")


def read_edges(
    path: Path, declared: NodeIds | None, kind: str, labels_path: Path | None = None
) -> tuple[NodeIds, np.ndarray, np.ndarray]:
    """Read the edges, from the columns src,dst (or source,target …), else from the first two.

    Args:
        declared: the nodes, if the user has said which there are; else they are the ids of the edges, ascending.
        kind: "auto", "integer" or "string" (see `node_ids.read_ids`), for nodes that were not declared.
        labels_path: a CSV file of labels. Where ids are strings it may name further nodes, which have no edge: nothing
            else lists them. Integers are not taken from it, as --num-nodes says better which of them are nodes.

    Returns:
        The nodes, and the edges' ends as int64 [num_rows] of nodes.

    Raises:
        UserError: the file is no CSV, or damaged, or an id is missing, of the wrong kind or not declared.
    """
    table = open_table(path)
    columns = table.find_columns(SRC_NAMES, DST_NAMES)
    if declared is not None:
        src, dst = declared.read_node_columns(table, columns)
        return declared, src, dst
    src_ids, dst_ids = read_ids(table, columns, kind)
    origin = f"an id that occurs in {path} (--num-nodes or --node-ids declare nodes without edges)"
    if src_ids.dtype != object or labels_path is None:
        node_ids, (src, dst) = number_ids([src_ids, dst_ids], origin)
    else:
        node_ids, (src, dst, labelled) = number_ids([src_ids, dst_ids, _read_labelled_ids(labels_path)], origin)
        if not np.isin(labelled, src).any() and not np.isin(labelled, dst).any():
            raise UserError(f"{labels_path}: none of its nodes has an edge in {path}; are the ids spelled alike?")
    _check_header(table, columns, node_ids)
    return node_ids, src, dst


def _read_labelled_ids(path: Path) -> np.ndarray:
    table = open_table(path)
    return table.read_texts(table.find_columns(NODE_NAMES, LABEL_NAMES)[:1])[0]


def _check_header(table: CsvTable, columns: list[int], node_ids: NodeIds) -> None:
    names = [table.header[column].strip() for column in columns]
    is_known = all(name.lower() in SRC_NAMES + DST_NAMES for name in names)
    if not is_known and not node_ids.are_integers and (node_ids.find(np.array(names, dtype=object)) >= 0).any():
        raise UserError(
            f"{table.path}, line 1: expected a header such as src,dst, found {','.join(names)!r}, "
            "which are ids of nodes"
        )
