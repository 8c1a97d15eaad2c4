"""The users' own node ids, and which node of the graph each of them names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import UserError
from .csv_table import CsvTable, is_integer, open_table, shorten

INT64_RANGE = range(-(2**63), 2**63)
MAX_NODES = math.isqrt(2**63 - 1)
NODE_NAMES = ("node", "id", "node_id", "nid")


@dataclass(frozen=True)
class NodeIds:
    """Distinct ids in the order of the graph's nodes.

    Attributes:
        values: int64 [num_nodes], or object [num_nodes] of str.
        is_range: the ids are 0 … num_nodes - 1, so an id is its node.
        is_listed: the user has listed the ids, and so knows their order.
        origin: says in an error which ids there are, such as "one of 0 … 9".
    """

    values: np.ndarray
    is_range: bool
    origin: str
    is_listed: bool = False

    @classmethod
    def consecutive(cls, num_nodes: int, origin: str) -> NodeIds:
        """The ids 0 … num_nodes - 1.

        Raises:
            UserError: there are more than `simple_csc` can number edges between.
        """
        if not 0 < num_nodes <= MAX_NODES:
            raise UserError(f"expected 1 … {MAX_NODES:,} nodes, found {num_nodes:,}")
        return cls(np.arange(num_nodes, dtype=np.int64), True, origin)

    @classmethod
    def of_values(cls, values: np.ndarray, origin: str, is_listed: bool = False) -> NodeIds:
        """Ids in an order of their own."""
        is_range = values.dtype != object and bool((values == np.arange(len(values))).all())
        return cls(values, is_range, origin, is_listed)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def are_integers(self) -> bool:
        return self.values.dtype != object

    def find(self, ids: np.ndarray) -> np.ndarray:
        """int64 [len(ids)]: the node of each id, -1 where no node has it. The ids are of the type of ours."""
        if self.is_range:
            return np.where((ids >= 0) & (ids < len(self)), ids, -1)
        import pandas

        return pandas.Index(self.values).get_indexer(ids).astype(np.int64, copy=False)

    def read_nodes(self, table: CsvTable, column: int) -> np.ndarray:
        """int64 [num_rows]: the nodes that a column of a table names.

        Raises:
            UserError: a value is missing or names none of our nodes, with its line.
        """
        return self.read_node_columns(table, [column])[0]

    def _is_spelled(self, node_id: int | str, text: str) -> bool:
        return _as_id(text, self.are_integers) == node_id

    def read_node_columns(self, table: CsvTable, columns: list[int]) -> list[np.ndarray]:
        """The same for several columns at once."""
        arrays = read_ids(table, columns, "integer" if self.are_integers else "string")
        nodes = []
        for column, ids in zip(columns, arrays):
            found = self.find(ids)
            if (found < 0).any():
                line, value = table.first_line(column, partial(self._is_spelled, ids[np.argmax(found < 0)]))
                raise UserError(f"{table.path}, line {line}: no node has the id {value!r}; expected {self.origin}")
            nodes.append(found)
        return nodes


def read_ids(table: CsvTable, columns: list[int], kind: str) -> list[np.ndarray]:
    """Columns of ids, each int64 [num_rows], or object [num_rows] of str.

    Args:
        kind: "integer" or "string"; "auto" takes integers if all are, strings if none is, and refuses a mixture,
            which is far more often a damaged row than a name that happens to be a number.

    Raises:
        UserError: an id is missing, or not of the kind, with its line.
    """
    if kind != "string":
        arrays = table.read_integers(columns)
        if arrays is not None:
            return arrays
    texts = table.read_texts(columns)
    if kind == "string":
        return texts

    import pandas

    distinct = [pandas.unique(array) for array in texts]
    if kind == "auto" and not any(is_integer(value) for values in distinct for value in values):
        return texts
    for column, values in zip(columns, distinct):
        if not all(is_integer(value) for value in values):
            line, value = table.first_line(column, lambda value: not is_integer(value))
            hint = "" if kind == "integer" else " while others are; mend it, or give --ids string if the ids are names"
            raise UserError(f"{table.path}, line {line}: the id {value!r} is not an integer{hint}")
    for column, values in zip(columns, distinct):
        if any(int(value) not in INT64_RANGE for value in values):
            line, value = table.first_line(column, lambda value: int(value) not in INT64_RANGE)
            raise UserError(f"{table.path}, line {line}: the id {value!r} does not fit 64 bits; give --ids string")
    raise UserError(f"{table.path}: the ids cannot be read as integers; give --ids string if they are names")


def read_node_list(path: Path, kind: str) -> NodeIds:
    """The nodes, in order, from a CSV file with one id a row (column "node", or the first).

    Raises:
        UserError: an id is missing, of the wrong kind, or listed twice.
    """
    table = open_table(path)
    column = table.find_columns(NODE_NAMES)[0]
    ids = read_ids(table, [column], kind)[0]

    import pandas

    repeated = pandas.Index(ids).duplicated()
    if repeated.any():
        raise UserError(f"{path}: the id {shorten(str(ids[np.argmax(repeated)]))!r} is listed twice")
    return NodeIds.of_values(ids, f"one of those listed in {path}", is_listed=True)


def number_ids(columns: list[np.ndarray], origin: str) -> tuple[NodeIds, list[np.ndarray]]:
    """Make nodes of all ids that occur, ascending; returns them, and the node of every id in the columns."""
    import pandas

    codes, distinct = pandas.factorize(np.concatenate(columns))
    order = np.argsort(distinct)
    node_of_code = np.empty(len(distinct), dtype=np.int64)
    node_of_code[order] = np.arange(len(distinct))
    bounds = np.cumsum([len(column) for column in columns])[:-1]
    return NodeIds.of_values(distinct[order], origin), np.split(node_of_code[codes], bounds)


def _as_id(text: str, are_integers: bool) -> int | str | None:
    if not are_integers:
        return text
    try:
        return int(float(text)) if "." in text or "e" in text.lower() else int(text)
    except (ValueError, OverflowError):
        return None
