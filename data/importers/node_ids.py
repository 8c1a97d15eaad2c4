"""The users' own node ids, and which node of the graph each of them names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import UserError
from .columns import NODE
from .csv_table import CsvTable, open_table
from .table_ids import as_integer, read_ids
from .table_options import TableOptions
from .text_file import shorten

MAX_NODES = math.isqrt(2**63 - 1)


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

    def read_node_columns(self, table: CsvTable, positions: list[int]) -> list[np.ndarray]:
        """int64 [num_rows] each: the nodes that the columns of some roles name.

        Raises:
            UserError: a value is missing or names none of our nodes, with its line.
        """
        arrays = read_ids(table, positions, "integer" if self.are_integers else "string")
        nodes = []
        for position, ids in zip(positions, arrays):
            found = self.find(ids)
            if (found < 0).any():
                line, value = table.first_line(position, partial(self._is_spelled, ids[np.argmax(found < 0)]))
                raise UserError(f"{table.path}, line {line}: no node has the id {value!r}; expected {self.origin}")
            nodes.append(found)
        return nodes

    def _is_spelled(self, node_id: int | str, text: str) -> bool:
        return (as_integer(text) if self.are_integers else text) == node_id


def read_node_list(path: Path, kind: str, options: TableOptions) -> NodeIds:
    """The nodes, in order, from a CSV file with one id a row, in a column such as "node".

    Raises:
        UserError: an id is missing, of the wrong kind, or listed twice.
    """
    table = open_table(path, (NODE,), options)
    options.accounts["node ids"] = table.account
    ids = read_ids(table, [0], kind)[0]

    import pandas

    repeated = pandas.Index(ids).duplicated()
    if repeated.any():
        twice = ids[np.argmax(repeated)]
        raise UserError(f"{path}: the id {shorten(str(twice))!r} is listed twice; expected each once")
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
