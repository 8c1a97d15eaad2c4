"""Edge lists in CSV: one edge a row, by the users' own ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import UserError
from .columns import EDGE_ROLES, LABEL, NODE
from .csv_table import open_table
from .node_ids import NodeIds, number_ids
from .table_ids import read_ids
from .table_options import TableOptions


def read_edges(
    path: Path, declared: NodeIds | None, kind: str, labels_path: Path | None, options: TableOptions
) -> tuple[NodeIds, np.ndarray, np.ndarray]:
    """Read the edges, from columns such as src,dst or those that the options name.

    Args:
        declared: the nodes, if the user has said which there are; else they are the ids of the edges, ascending.
        kind: "auto", "integer" or "string" (see `table_ids.read_ids`), for nodes that were not declared.
        labels_path: a CSV file of labels. Where ids are strings it may name further nodes, which have no edge: nothing
            else lists them. Integers are not taken from it, as --num-nodes says better which of them are nodes.

    Returns:
        The nodes, and the edges' ends as int64 [num_rows] of nodes.

    Raises:
        UserError: the file is no CSV, or damaged, or an id is missing, of the wrong kind or not declared.
    """
    table = open_table(path, EDGE_ROLES, options)
    options.accounts["edges"] = table.account
    if declared is not None:
        src, dst = declared.read_node_columns(table, [0, 1])
        return declared, src, dst
    src_ids, dst_ids = read_ids(table, [0, 1], kind)
    origin = f"an id that occurs in {path} (--num-nodes or --node-ids declare nodes without edges)"
    if src_ids.dtype != object or labels_path is None:
        node_ids, (src, dst) = number_ids([src_ids, dst_ids], origin)
        return node_ids, src, dst
    labelled_ids = read_ids(open_table(labels_path, (NODE, LABEL), options), [0], "string")[0]
    node_ids, (src, dst, labelled) = number_ids([src_ids, dst_ids, labelled_ids], origin)
    if not np.isin(labelled, src).any() and not np.isin(labelled, dst).any():
        raise UserError(f"{labels_path}: none of its nodes has an edge in {path}; are the ids spelled alike?")
    return node_ids, src, dst
