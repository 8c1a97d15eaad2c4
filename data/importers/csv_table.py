"""CSV files, plain or gzip: the columns that were chosen, as arrays.

The values are read by the C parser of pandas from chunks that `row_stream.py` looks through; only once something is
or may be wrong does `row_blame.py` go through the lines one by one.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Callable

import numpy as np

from ..errors import UserError
from .characters import BLANKS, odd_blank
from .columns import Role
from .first_lines import Layout, read_layout
from .numerals import is_integer
from .row_blame import (
    check_rows,
    check_single_quotes,
    check_spelling,
    column_name,
    first_row_where,
    is_in_single_quotes,
    read_rows,
)
from .row_stream import RowStream
from .table_options import TableAccount, TableOptions
from .text_file import one_line, open_bytes


class CsvTable:
    """A CSV file whose first lines have been read.

    Attributes:
        account: what was understood of it.
    """

    def __init__(self, path: Path, layout: Layout, roles: tuple[Role, ...], options: TableOptions) -> None:
        self.path, self.layout = path, layout
        self._options = options
        self._stream: RowStream | None = None  # of the last reading
        self._texts: list[np.ndarray] | None = None
        names = [layout.header[column].strip() if layout.header else str(column + 1) for column in layout.columns]
        columns = {role.name: name for role, name in zip(roles, names)}
        self.account = TableAccount(
            path.name, columns, bool(layout.header), layout.separator, skipped=dict(layout.skipped)
        )

    def read_integers(self, positions: list[int] | None = None) -> list[np.ndarray] | None:
        """The columns of some roles (default: of all) as int64 [num_rows]; None if a value is missing, or is no plain
        integer, or too large, or if one may have leading zeros.

        Raises:
            UserError: the rows cannot be told apart.
        """
        columns = [self.layout.columns[position] for position in self._positions(positions)]
        if self._texts is not None or not self._begins_with_integers(columns):
            return None
        arrays = self._read({column: object for column in range(self.layout.width) if column not in columns}, columns)
        assert self._stream is not None
        if self._stream.has_leading_zeros or any(array.dtype != np.int64 for array in arrays):
            return None
        return arrays

    def read_texts(self, positions: list[int] | None = None, may_be_empty: bool = False) -> list[np.ndarray]:
        """The columns of some roles (default: of all) as object [num_rows] of str, without the blanks around them.

        Rows that repeat the header are left out.

        Raises:
            UserError: a value is missing, naming the line, or the rows cannot be told apart.
        """
        if self._texts is None:
            self._texts = self._without_repeated_headers(self._read_texts())
        wanted = self._positions(positions)
        for position in wanted:
            if not may_be_empty and (self._texts[position] == "").any():
                line, _ = self.first_line(position, lambda value: not value)
                name = column_name(self.layout, self.layout.columns[position])
                raise UserError(f"{self.path}, line {line}: no value for {name}; expected one in every row")
        return [self._texts[position] for position in wanted]

    def first_line(self, position: int, is_wrong: Callable[[str], bool]) -> tuple[int, str]:
        """The number of the first line whose field in a role's column is wrong, and the field.

        Raises:
            UserError: no field is wrong by itself, so that no line can be named.
        """
        return first_row_where(self.path, self.layout, self._options, self.layout.columns[position], is_wrong)

    def check_names(self, positions: list[int], names: np.ndarray) -> None:
        """Refuse ids that are no integers and may be meant otherwise than they are spelled.

        Args:
            names: the distinct ids in these columns.

        Raises:
            UserError: two differ in the blanks around them, or one has odd blanks or single quotes around it.
        """
        for name in names:
            blank = odd_blank(name)
            if blank is not None:
                line, found = self._first_of(positions, name)
                raise UserError(
                    f"{self.path}, line {line}: expected an id without blanks around it, found {blank} in {found!r}; "
                    "remove it"
                )
        columns = tuple(self.layout.columns[position] for position in positions)
        if any(map(is_in_single_quotes, names)):
            check_single_quotes(self.path, self.layout, self._options, columns)
        if self._stream is not None and self._stream.has_blanks:
            check_spelling(self.path, self.layout, self._options, columns)

    def _first_of(self, positions: list[int], value: str) -> tuple[int, str]:
        assert self._texts is not None
        position = next(one for one in positions if (self._texts[one] == value).any())
        return self.first_line(position, lambda found: found == value)

    def _begins_with_integers(self, columns: list[int]) -> bool:
        """False spares a table of names the attempt to read integers."""
        _, row = next(read_rows(self.path, self.layout, self._options), (0, []))
        return all(column < len(row) and is_integer(row[column].strip(BLANKS)) for column in columns)

    def _positions(self, positions: list[int] | None) -> list[int]:
        return list(range(len(self.layout.columns))) if positions is None else positions

    def _read_texts(self) -> list[np.ndarray]:
        import pandas

        arrays = self._read(dict.fromkeys(range(self.layout.width), object), list(self.layout.columns))
        assert self._stream is not None
        texts = []
        for array in arrays:
            text = np.where(pandas.isna(array), "", array)
            if self._stream.has_blanks:
                text[:] = [value.strip(BLANKS) for value in text]
            texts.append(text)
        return texts

    def _without_repeated_headers(self, texts: list[np.ndarray]) -> list[np.ndarray]:
        names = [self.layout.header[column].strip().lower() for column in self.layout.columns if self.layout.header]
        if not names or all(map(is_integer, names)):
            return texts
        candidates = np.arange(len(texts[0]))
        for text, name in zip(texts, names):
            candidates = candidates[[value.lower() == name for value in text[candidates]]]
        if len(candidates) and not self.layout.is_known:
            line, _ = self.first_line(0, lambda value: value.lower() == names[0])
            raise UserError(
                f"{self.path}, line {line}: expected a row, found the names of the header again; remove the line, "
                "or rename the header's columns"
            )
        if len(candidates):
            self._count("repeated header", len(candidates))
            texts = [np.delete(text, candidates) for text in texts]
            self.account.num_rows = len(texts[0])
            if not len(texts[0]):
                raise UserError(f"{self.path}: there is a header but no row below it")
        return texts

    def _read(self, dtype: dict, columns: list[int]) -> list[np.ndarray]:
        frame = self.read_frame(dtype)
        return [frame[column].to_numpy() for column in columns]

    def read_frame(self, dtype):
        """All columns as pandas has them, of the types given.

        Raises:
            UserError: the rows cannot be told apart, or there is none.
        """
        import pandas

        with open_bytes(self.path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", pandas.errors.ParserWarning)  # of long rows; the fields are counted
            self._stream = stream = RowStream(self.path, file, self.layout, self._options)
            try:
                frame = pandas.read_csv(
                    stream,
                    engine="c",
                    sep=self.layout.separator,
                    header=None,
                    names=list(range(self.layout.width)),
                    dtype=dtype,
                    index_col=False,
                    skipinitialspace=True,
                    keep_default_na=False,
                    na_values=[""],
                )
            except UserError:
                raise
            except (ValueError, OverflowError) as error:  # such as pandas.errors.ParserError
                check_rows(self.path, self.layout, self._options)
                detail = one_line(error).replace("Error tokenizing data. C error: ", "")
                raise UserError(f"{self.path}: the rows cannot be told apart ({detail})") from error
        self._check_counts(stream, len(frame))
        if not len(frame):
            what = "there is a header but no row below it" if self.layout.header else "there is no row"
            raise UserError(f"{self.path}: {what}")
        return frame

    def _check_counts(self, stream: RowStream, num_rows: int) -> None:
        """A row a line, with as many fields as there are columns, or else look closer."""
        num_blank = stream.num_lines - num_rows
        is_even = stream.num_separators == (self.layout.width - 1) * num_rows
        if stream.is_doubtful or not is_even or (num_blank and stream.has_quotes):
            check_rows(self.path, self.layout, self._options)
        self.account.num_rows = num_rows
        self.account.skipped = dict(self.layout.skipped)
        self._count("comment", stream.num_comments)
        self._count("blank", num_blank)

    def _count(self, reason: str, number: int) -> None:
        if number:
            self.account.skipped[reason] = self.account.skipped.get(reason, 0) + number


def open_table(path: Path, roles: tuple[Role, ...], options: TableOptions) -> CsvTable:
    """Read the first lines of a CSV file, and choose the columns for some roles.

    Raises:
        UserError: the file is missing, empty, binary or damaged, or its columns cannot be told.
    """
    path = Path(path)
    return CsvTable(path, read_layout(path, roles, options), roles, options)
