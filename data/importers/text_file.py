"""Text files, plain or gzip, as bytes, and what to say when one cannot be read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import UserError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 1 << 20
MAX_SHOWN = 40


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
    with explained(path), open(path, "rb") as file:
        magic = file.read(2)
    if magic and magic != GZIP_MAGIC and Path(path).suffix == ".gz":
        raise UserError(f"{path}: not a gzip file, though its name ends in .gz")
    return magic == GZIP_MAGIC


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a plain or gzip file, behind its byte order mark if it has one."""
    with explained(path), (gzip.open if is_gzip(path) else open)(path, "rb") as opened:
        file = cast(BinaryIO, opened)
        if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
            file.seek(0)
        yield file


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, without what ends them (a line feed, or a return before it).

    Raises:
        UserError: the file cannot be read, or a line is longer than any table's.
    """
    with open_bytes(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            check_length(path, number, line)
            yield number, line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")


def check_length(path: Path, number: int, line: bytes) -> None:
    """Refuse a line that is as long as `readline` may give, which no row of a table is."""
    if len(line) >= MAX_LINE_BYTES:
        raise UserError(f"{path}, line {number}: expected a row, found a line of more than {MAX_LINE_BYTES:,} bytes")


def decode(path: Path, number: int, line: bytes) -> str:
    """A line as text.

    Raises:
        UserError: it is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}, byte {error.start + 1}: not UTF-8 text, found the byte {line[error.start]:#04x}; "
            "save the file as UTF-8"
        ) from error


def shorten(value: str) -> str:
    """A value as it may appear within one line."""
    return value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "…"


def one_line(error: BaseException) -> str:
    """The first line of an error of somebody else's."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one line.

    Raises:
        UserError: in place of an error of gzip or of the system.
    """
    try:
        yield
    except UserError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: a truncated or damaged gzip file ({one_line(error)})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or one_line(error)})") from error
