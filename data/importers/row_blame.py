"""Rows one by one and exactly, once something is or may be wrong: which line is to blame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Callable

from ..errors import UserError
from .characters import BLANKS, check_characters
from .columns import plain_name
from .fields import is_blank, split_row
from .first_lines import Layout, comment_mark, refused_comment
from .table_options import TableOptions
from .text_file import read_lines, shorten


def read_rows(path: Path, layout: Layout, options: TableOptions) -> Iterator[tuple[int, list[str]]]:
    """The rows with their lines' numbers: fields with the blanks around them, without quotes.

    Raises:
        UserError: a line is no row.
    """
    for number, line in read_lines(path):
        if number < layout.first_row:
            continue
        text = check_characters(path, number, line)
        mark = comment_mark(text, options)
        if mark is not None and options.comments is None:
            raise refused_comment(path, number, mark)
        if mark is None and not is_blank(text, layout.separator):
            yield number, split_row(path, number, text, layout.separator)


def check_rows(path: Path, layout: Layout, options: TableOptions) -> None:
    """Refuse rows with more or fewer fields than there are columns.

    Raises:
        UserError: there is one, or a line is no row.
    """
    for number, row in read_rows(path, layout, options):
        if len(row) == layout.width:
            continue
        empty = next((column for column in layout.columns if column >= len(row)), None)
        missing = f"no value for {column_name(layout, empty)}: " if empty is not None else ""
        like = "as in the header" if layout.header else "as in the first row"
        raise UserError(
            f"{path}, line {number}: {missing}expected {layout.width} fields, {like}, found {len(row)}; mend the row, "
            "and put a field that holds a separator in double quotes"
        )


def first_row_where(
    path: Path, layout: Layout, options: TableOptions, column: int, is_wrong: Callable[[str], bool]
) -> tuple[int, str]:
    """The number of the first line whose field is wrong, and the field without blanks around it.

    Raises:
        UserError: no field is wrong by itself, so that no line can be named.
    """
    for number, row in read_rows(path, layout, options):
        value = row[column].strip(BLANKS) if column < len(row) else ""
        if is_wrong(value) and not is_header_again(layout, row):
            return number, shorten(value)
    raise UserError(f"{path}: a value of {column_name(layout, column)} cannot be used")


def check_spelling(path: Path, layout: Layout, options: TableOptions, columns: tuple[int, ...]) -> None:
    """Refuse ids that differ only in the blanks around them.

    A blank behind the separator is no part of a value where the header has it as well.

    Raises:
        UserError: there are two such ids, or one in single quotes.
    """
    spelled: dict[str, str] = {}
    for number, row in read_rows(path, layout, options):
        for column in columns:
            value = row[column]
            if layout.is_padded and column > 0:
                value = value[1:] if value[:1] in tuple(BLANKS) else value
            first = spelled.setdefault(value.strip(BLANKS), value)
            if first != value:
                raise UserError(
                    f"{path}, line {number}: expected one spelling of an id, found {shorten(value)!r} and before "
                    f"{shorten(first)!r}, which differ only in blanks; take the blanks away, or name them apart"
                )


def check_single_quotes(path: Path, layout: Layout, options: TableOptions, columns: tuple[int, ...]) -> None:
    """Refuse ids in single quotes, unless double quotes stand around these.

    Raises:
        UserError: there is such an id.
    """
    for number, line in read_lines(path):
        if number < layout.first_row:
            continue
        text = line.decode()
        row = split_row(path, number, text, layout.separator)
        for column in columns:
            value = row[column].strip(BLANKS) if column < len(row) else ""
            if is_in_single_quotes(value) and f'"{value}"' not in text:
                raise UserError(
                    f"{path}, line {number}: expected ids that are plain or in double quotes, found {shorten(value)}; "
                    f'write "{shorten(value)}" if the single quotes belong to the id'
                )


def is_in_single_quotes(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == "'"


def is_header_again(layout: Layout, row: list[str]) -> bool:
    """Whether a row repeats the header's known names in the chosen columns."""
    return layout.is_known and all(
        column < len(row) and plain_name(row[column]) == plain_name(layout.header[column]) for column in layout.columns
    )


def column_name(layout: Layout, column: int) -> str:
    """A column, as errors name it."""
    return repr(layout.header[column].strip()) if layout.header else f"column {column + 1}"
