"""CSV files, plain or gzip: named columns as arrays, and the line to blame when a row is wrong.

The values are read by the C parser of pandas; only once something is wrong are the lines gone through one by
one, to find which.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, TextIO

import numpy as np

from ..errors import UserError

GZIP_MAGIC = b"\x1f\x8b"
SEPARATORS = (",", "\t", ";")
INTEGER = re.compile(r"\s*[+-]?\d{1,4000}\s*")  # Python refuses to convert more digits
MAX_EXACT = 2**53  # float64 tells all integers below apart
MAX_SHOWN = 40


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose header has been read.

    Attributes:
        header: the columns' names; empty for a file without a header.
        separator: comma, tab or semicolon, whichever the first line has.
    """

    path: Path
    header: list[str]
    separator: str

    def find_columns(self, *names: tuple[str, ...]) -> list[int]:
        """The columns that are called by one of the names given for each; else simply the first columns.

        Raises:
            UserError: the file has fewer columns.
        """
        wished = ",".join(choices[0] for choices in names)
        if len(self.header) < len(names):
            raise UserError(f"{self.path}: expected the columns {wished}, found only {','.join(self.header)!r}")
        known = [name.strip().lower() for name in self.header]
        found = [next((known.index(name) for name in choices if name in known), None) for choices in names]
        columns = [column for column in found if column is not None]
        return columns if len(columns) == len(names) else list(range(len(names)))

    def read_integers(self, columns: list[int]) -> list[np.ndarray] | None:
        """These columns as int64 [num_rows], or None if a value is missing, or is no integer, or too large."""
        try:
            arrays = self._read(columns, np.int64)
        except (ValueError, OverflowError) as error:
            if isinstance(error, UserError):
                raise
            return None
        if any(array.dtype != np.int64 for array in arrays):  # pandas takes another type for what is too large
            return None
        for column, array in zip(columns, arrays):
            # Pandas reads 1e3 and 5.0 as integers, and would round those that float64 cannot hold.
            if max(int(array.max()), -int(array.min())) >= MAX_EXACT and not all(
                map(is_integer, self.read_texts([column])[0])
            ):
                return None
        return arrays

    def read_texts(self, columns: list[int]) -> list[np.ndarray]:
        """These columns as object [num_rows] of str, without the blanks around them.

        Raises:
            UserError: a value is missing, naming the line.
        """
        arrays = self._read(columns, object)
        for column, array in zip(columns, arrays):
            if any(not isinstance(value, str) or not value.strip() for value in array):
                line, _ = self.first_line(column, lambda value: not value)
                name = self.header[column].strip() if self.header else f"column {column + 1}"
                raise UserError(f"{self.path}, line {line}: no value for {name!r}")
        return [np.array([value.strip() for value in array], dtype=object) for array in arrays]

    def read_floats(self) -> np.ndarray:
        """The whole table as float32 [num_rows, num_columns]; an empty field is not a number.

        Raises:
            UserError: a value is not a number.
        """
        try:
            return self._read_frame(np.float32).to_numpy()
        except (ValueError, OverflowError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{self.path}: expected numbers only ({one_line(error)})") from error

    def first_line(self, column: int, is_wrong: Callable[[str], bool]) -> tuple[int, str]:
        """The number of the first line whose field is wrong, and the field; a missing field counts as ''.

        Raises:
            UserError: no field is wrong by itself, so that no line can be named.
        """
        with open_text(self.path) as file:
            rows = csv.reader(file, delimiter=self.separator, skipinitialspace=True)
            if self.header:
                next(rows)
            for row in rows:
                value = row[column].strip() if column < len(row) else ""
                if row and is_wrong(value):
                    return rows.line_num, shorten(value)
        raise UserError(f"{self.path}: a value in column {column + 1} cannot be used")

    def _read(self, columns: list[int], dtype) -> list[np.ndarray]:
        dtypes = {column: dtype if column in columns else object for column in range(len(self.header))} or dtype
        frame = self._read_frame(dtypes)
        arrays = [frame[column].to_numpy() for column in columns]
        if not len(arrays[0]):
            raise UserError(f"{self.path}: there is a header but no row below it")
        return arrays

    def _read_frame(self, dtype):
        import pandas

        names = list(range(len(self.header))) or None
        with _explained(self.path), warnings.catch_warnings(), np.errstate(all="ignore"):
            # Pandas only warns of a first row that is longer than the header, and cuts it.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            return pandas.read_csv(
                self.path,
                engine="c",
                sep=self.separator,
                header=0 if self.header else None,
                names=names,
                dtype=dtype,
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8",
                compression="gzip" if is_gzip(self.path) else None,
            )


def open_table(path: Path) -> CsvTable:
    """Read the header of a CSV file.

    Raises:
        UserError: the file is missing, empty, binary or damaged, or has no header.
    """
    path = Path(path)
    check_file(path)
    with open_text(path) as file:
        first_line = file.readline(1 << 16)
    if not first_line:
        raise UserError(f"{path}: the file is empty; expected a header and rows")
    if "\0" in first_line:
        raise UserError(f"{path}: binary data; expected CSV text, plain or gzip")
    separator = next((candidate for candidate in SEPARATORS if candidate in first_line), ",")
    header = next(csv.reader([first_line], delimiter=separator, skipinitialspace=True), [])
    if first_line.startswith("#") or not any(field.strip() for field in header) or INTEGER.fullmatch(header[0]):
        raise UserError(f"{path}, line 1: expected a header such as src,dst, found {shorten(first_line.strip())!r}")
    return CsvTable(path, header, separator)


def open_bare_table(path: Path) -> CsvTable:
    """A comma-separated file without a header, of which every row is data.

    Raises:
        UserError: there is no such file.
    """
    check_file(path)
    return CsvTable(Path(path), [], ",")


def check_file(path: Path) -> None:
    """Refuse what is no file.

    Raises:
        UserError: there is no such file, or it is a folder.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; expected a file' if path.is_dir() else 'no such file'}")


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its first bytes.

    Raises:
        UserError: it is called .gz but is not.
    """
    with _explained(path), open(path, "rb") as file:
        magic = file.read(2)
    if magic and magic != GZIP_MAGIC and Path(path).suffix == ".gz":
        raise UserError(f"{path}: not a gzip file, though its name ends in .gz")
    return magic == GZIP_MAGIC


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a plain or gzip file as UTF-8 text."""
    with _explained(path), (gzip.open if is_gzip(path) else open)(path, "rb") as file:
        yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def is_integer(text: str) -> bool:
    return INTEGER.fullmatch(text) is not None


def shorten(value: str) -> str:
    """A value as it may appear within one line."""
    return value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "…"


def one_line(error: BaseException) -> str:
    """The first line of an error of somebody else's."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import pandas

    try:
        yield
    except UserError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: a truncated or damaged gzip file ({one_line(error)})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text ({one_line(error)})") from error
    except pandas.errors.EmptyDataError as error:
        raise UserError(f"{path}: the file is empty; expected a header and rows") from error
    except (pandas.errors.ParserError, csv.Error) as error:
        detail = one_line(error).replace("Error tokenizing data. C error: ", "")
        raise UserError(f"{path}: the rows cannot be told apart ({detail})") from error
    except pandas.errors.ParserWarning as error:
        raise UserError(f"{path}: the first row below the header has more fields than the header") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or one_line(error)})") from error
