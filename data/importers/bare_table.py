"""CSV files of a known form, without a header, of which every line is a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import UserError
from .csv_table import CsvTable
from .first_lines import Layout
from .table_options import TableOptions
from .text_file import check_file, decode, one_line, read_lines


def open_bare_table(path: Path, num_columns: int | None = None) -> CsvTable:
    """Open a comma-separated file.

    Raises:
        UserError: there is no such file, or it is empty, or its first row has another number of columns.
    """
    check_file(path)
    first = next(read_lines(path), None)
    if first is None:
        raise UserError(f"{path}: the file is empty; expected rows")
    width = decode(path, *first).count(",") + 1
    if num_columns is not None and width != num_columns:
        raise UserError(f"{path}, line 1: expected {num_columns} columns, found {width}")
    layout = Layout(",", tuple(range(width)), [], width, 1, False, False, {})
    return CsvTable(Path(path), layout, (), TableOptions(comments=()))


def read_floats(path: Path) -> np.ndarray:
    """A whole file as float32 [num_rows, num_columns]; an empty field is not a number.

    Raises:
        UserError: the file cannot be read, or a value is not a number.
    """
    table = open_bare_table(path)
    try:
        return table.read_frame(np.float32).to_numpy()
    except (ValueError, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: expected numbers only ({one_line(error)})") from error


def read_numbers(path: Path, num_columns: int) -> list[np.ndarray]:
    """Columns of integers, each int64 [num_rows].

    Raises:
        UserError: the file cannot be read, or has other columns or values.
    """
    arrays = open_bare_table(path, num_columns).read_integers()
    if arrays is None:
        raise UserError(f"{path}: expected {num_columns} columns of integers and nothing else")
    return arrays
