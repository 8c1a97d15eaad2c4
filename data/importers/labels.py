"""Labels, from a CSV table or an array."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UserError
from .csv_table import is_integer, open_table
from .node_ids import NODE_NAMES, NodeIds

LABEL_NAMES = ("label", "class", "labels", "y")


@dataclass(frozen=True)
class Labels:
    """Labels as in `NodeData`: int32 [num_nodes], -1 where unknown, or uint8 [num_nodes, num_classes]."""

    values: np.ndarray
    class_names: list[str]


def unknown_labels(num_nodes: int) -> Labels:
    """No node has a label."""
    return Labels(np.full(num_nodes, -1, dtype=np.int32), [])


def read_label_table(path: Path, node_ids: NodeIds, multilabel: bool) -> Labels:
    """Read the columns node,label (else the first two) of a CSV file, one row a node and label.

    Labels may be words or integers; classes are sorted, integers by their value. Two different labels of one node
    make all labels multi-label; `multilabel` forces it. Nodes without a row have no label.

    Raises:
        UserError: the file is no CSV, or damaged, or a label is missing, or of an unknown node.
    """
    table = open_table(path)
    node_column, label_column = table.find_columns(NODE_NAMES, LABEL_NAMES)
    nodes = node_ids.read_nodes(table, node_column)
    codes, class_names = _number_classes(table.read_texts([label_column])[0])

    num_classes = len(class_names)
    keys = np.unique(nodes * num_classes + codes)
    nodes, codes = keys // num_classes, keys % num_classes
    if multilabel or (nodes[1:] == nodes[:-1]).any():
        values = np.zeros((len(node_ids), num_classes), dtype=np.uint8)
        values[nodes, codes] = 1
    else:
        values = np.full(len(node_ids), -1, dtype=np.int32)
        values[nodes] = codes
    return Labels(values, class_names)


def labels_of_array(array: np.ndarray, num_nodes: int, origin: str) -> Labels:
    """Labels from numbers [num_nodes] or [num_nodes, 1], where a negative one or NaN means unknown, or from
    zeros and ones [num_nodes, num_classes]. Classes are named by their numbers, up to the largest that occurs.

    Args:
        origin: names the array in an error.

    Raises:
        UserError: the array has another shape, or values that cannot be labels.
    """
    array = np.asarray(array)
    if array.ndim not in (1, 2) or len(array) != num_nodes or array.dtype.kind not in "biuf" or array.size == 0:
        raise UserError(
            f"{origin}: expected numbers of shape [{num_nodes}] or [{num_nodes}, classes], "
            f"found {array.dtype} {list(array.shape)}"
        )
    if array.ndim == 2 and array.shape[1] > 1:
        array = np.nan_to_num(array) if array.dtype.kind == "f" else array
        if not ((array == 0) | (array == 1)).all():
            raise UserError(f"{origin}: several labels a node are given by zeros and ones, found other values")
        return Labels(array.astype(np.uint8), [str(code) for code in range(array.shape[1])])
    array = array.reshape(num_nodes)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1.0, array)
        if np.isinf(array).any():
            raise UserError(f"{origin}: expected class numbers, found an infinite one")
        if (array != np.floor(array)).any():
            raise UserError(f"{origin}: expected class numbers, found {array[array != np.floor(array)][0]:g}")
    if array.max() >= 2**31 - 1:
        raise UserError(f"{origin}: expected class numbers below 2^31, found {array.max()}")
    values = np.maximum(array.astype(np.int64), -1).astype(np.int32)
    return Labels(values, [str(code) for code in range(int(values.max()) + 1)])


def _number_classes(texts: np.ndarray) -> tuple[np.ndarray, list[str]]:
    import pandas

    codes, distinct = pandas.factorize(texts)
    if all(is_integer(name) for name in distinct):
        numbers = np.array([int(name) for name in distinct], dtype=object)
        codes, distinct = pandas.factorize(numbers[codes])  # "07" and "7" are one class
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(distinct), dtype=np.int64)
    rank[order] = np.arange(len(distinct))
    return rank[codes], [str(distinct[code]) for code in order]
