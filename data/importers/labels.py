"""Labels, from a CSV table or an array."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import UserError
from .characters import odd_blank
from .classes import number_texts, number_values
from .columns import LABEL, NODE
from .csv_table import CsvTable, open_table
from .marks import DEFAULT_MARKS
from .node_ids import NodeIds
from .numerals import is_integer
from .table_options import TableOptions

MAX_CLASSES = 2**31 - 1


@dataclass(frozen=True)
class Labels:
    """Labels as in `NodeData`: int32 [num_nodes], -1 where unknown, or uint8 [num_nodes, num_classes].

    Attributes:
        marks: mark of no label → how often it was found.
    """

    values: np.ndarray
    class_names: list[str]
    marks: dict[str, int] = field(default_factory=dict)


def unknown_labels(num_nodes: int) -> Labels:
    """No node has a label."""
    return Labels(np.full(num_nodes, -1, dtype=np.int32), [])


def read_label_table(path: Path, node_ids: NodeIds, multilabel: bool, options: TableOptions) -> Labels:
    """Read columns such as node,label of a CSV file, one row a node and label.

    Two different labels of one node make all labels multi-label; `multilabel` forces it. Nodes without a row, or with a
    mark for a label, have none.

    Raises:
        UserError: the file is no CSV, or damaged, or a label is missing, or of an unknown node.
    """
    table = open_table(path, (NODE, LABEL), options)
    options.accounts["labels"] = table.account
    (nodes,) = node_ids.read_node_columns(table, [0])
    (texts,) = table.read_texts([1], may_be_empty="" in options.marks)
    codes, class_names, marks = number_texts(texts, options.marks)
    _check_names(table, class_names)
    table.account.marks = marks
    if not class_names:
        return Labels(unknown_labels(len(node_ids)).values, [], marks)
    nodes, codes = nodes[codes >= 0], codes[codes >= 0]

    num_classes = len(class_names)
    keys = np.unique(nodes * num_classes + codes)
    nodes, codes = keys // num_classes, keys % num_classes
    if multilabel or (nodes[1:] == nodes[:-1]).any():
        values = np.zeros((len(node_ids), num_classes), dtype=np.uint8)
        values[nodes, codes] = 1
    else:
        values = np.full(len(node_ids), -1, dtype=np.int32)
        values[nodes] = codes
    return Labels(values, class_names, marks)


def labels_of_array(array: np.ndarray, num_nodes: int, origin: str, marks: tuple[str, ...] = DEFAULT_MARKS) -> Labels:
    """Labels from whole numbers [num_nodes] or [num_nodes, 1], where a mark or NaN means unknown, or from zeros and
    ones [num_nodes, num_classes], of which NaN is zero. Classes are named by their numbers.

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
        _check_floats(array, origin, marks)
    values, class_names, found = number_values(array, marks)
    return Labels(values.astype(np.int32), class_names, found)


def read_number_column(table: CsvTable, num_nodes: int, marks: tuple[str, ...]) -> Labels:
    """Labels from a table of one column, a whole number or a mark a node in order.

    Raises:
        UserError: the table cannot be read, or has another length, or other labels.
    """
    arrays = table.read_integers()
    if arrays is not None:
        return labels_of_array(arrays[0], num_nodes, str(table.path), marks)
    (texts,) = table.read_texts(may_be_empty=True)
    codes, class_names, found = number_texts(texts, marks)
    if not all(map(is_integer, class_names)):
        other = next(name for name in class_names if not is_integer(name))
        raise UserError(f"{table.path}: expected numbers only, as labels, found {other!r}")
    if len(codes) != num_nodes:
        raise UserError(f"{table.path}: expected numbers of shape [{num_nodes}], found [{len(codes)}]")
    return Labels(codes.astype(np.int32), class_names, found)


def _check_floats(array: np.ndarray, origin: str, marks: tuple[str, ...]) -> None:
    is_nan = np.isnan(array)
    if is_nan.any() and "nan" not in marks:
        raise UserError(f"{origin}: expected class numbers, found NaN; add nan to --unlabelled if it means no label")
    if np.isinf(array).any():
        raise UserError(f"{origin}: expected class numbers, found an infinite one")
    is_broken = ~is_nan & (array != np.floor(array))
    if is_broken.any():
        raise UserError(f"{origin}: expected class numbers, found {array[is_broken][0]:g}")


def _check_names(table: CsvTable, class_names: list[str]) -> None:
    """Refuse labels that differ from others in what cannot be seen."""
    name = next((name for name in class_names if odd_blank(name)), None)
    if name is not None:
        line, found = table.first_line(1, lambda value: value == name)
        raise UserError(
            f"{table.path}, line {line}: expected a label without blanks around it, found {odd_blank(name)} in "
            f"{found!r}; remove it"
        )
