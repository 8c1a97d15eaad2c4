"""The first lines of a table: what separates its columns, its header if it has one, and which columns are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from .characters import check_characters
from .columns import ColumnError, Role, find_columns, number_columns, plain_name, wanted_columns
from .fields import SEPARATORS, FieldError, are_padded, has_stray_quote, split_fields, split_row
from .table_options import TableOptions
from .text_file import check_file, read_lines, shorten

COMMENT_MARKS = ("#", "%")
SEPARATOR_LINE = re.compile(r'"?sep=([,;|:\t]|\\t)"?', re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are to be read.

    Attributes:
        columns: the column of every role, from 0.
        header: the columns' names; empty where there is no header.
        width: how many columns there are.
        first_row: the number of the line, from 1, behind the header or with the first row.
        is_known: the header has known names for all roles, so that a row of these names is the header again.
        is_padded: values stand behind a blank in the header too, so that it is no part of them.
        skipped: reason → number of lines before the first row.
    """

    separator: str
    columns: tuple[int, ...]
    header: list[str]
    width: int
    first_row: int
    is_known: bool
    is_padded: bool
    skipped: dict[str, int]


def comment_mark(text: str, options: TableOptions) -> str | None:
    """What makes a line a comment, if it is one: what the user named, or # or %; nothing if the user said so."""
    if options.comments is None:
        return next((mark for mark in COMMENT_MARKS if text.startswith(mark)), None)
    return next((mark for mark in options.comments if text.startswith(mark)), None)


def refused_comment(path: Path, number: int, mark: str) -> UserError:
    """The error of a line that may be a comment and may be a row."""
    return UserError(
        f"{path}, line {number}: expected a row, found a line that begins with {mark!r}; give --comment '{mark}' to "
        "skip such lines, or --comment none if they are data"
    )


def read_layout(path: Path, roles: tuple[Role, ...], options: TableOptions) -> Layout:
    """Read the lines before the first row.

    Raises:
        UserError: the file is missing, empty, binary or damaged, or its columns cannot be told by name.
    """
    check_file(path)
    number, text, separator, skipped, first_comment = _first_line(path, options)
    candidates = (separator,) if separator else tuple(one for one in SEPARATORS if one in text) or (",",)
    rows = _split_by(path, number, text, candidates)
    layouts, problem = [], ""
    for candidate, row in rows.items():
        try:
            columns = _find_in_header(row, roles, options)
        except ColumnError as error:
            problem = str(error)
            continue
        if columns is not None:
            layouts.append(_with_header(candidate, columns, row, roles, number, text, skipped))
    if len(layouts) == 1:
        return layouts[0]
    widest = max(rows.values(), key=len)
    if options.has_header or problem or layouts:
        problem = problem or ("several separators fit; write sep=, or the like as the first line" if layouts else "")
        raise wanted_columns(path, number, roles, widest, problem or _missing(widest, roles, options))
    if first_comment is not None:
        raise refused_comment(path, *first_comment)
    if separator is None:
        _check_separator(path, number, text, rows)
    return _without_header(path, rows, roles, options, number, skipped)


def _first_line(path: Path, options: TableOptions):
    """The first line that is a header or a row; the separator, if a line names it; lines skipped, by reason; the first
    comment among them that the user has not said to skip."""
    separator, skipped, first_comment, number = None, dict[str, int](), None, 0
    for number, line in read_lines(path):
        if b"\0" in line and number == 1:
            raise UserError(f"{path}, line 1: binary data; expected CSV text, plain or gzip, in UTF-8")
        text = check_characters(path, number, line)
        named = SEPARATOR_LINE.fullmatch(text.strip()) if number == 1 else None
        mark = comment_mark(text, options)
        if named:
            separator, reason = named[1].replace("\\t", "\t"), "separator line"
        elif mark is not None:
            reason = "comment"
            if options.comments is None and first_comment is None:
                first_comment = (number, mark)
        elif not text.strip():
            reason = "blank"
        else:
            return number, text, separator, skipped, first_comment
        skipped[reason] = skipped.get(reason, 0) + 1
    if number == 0:
        raise UserError(f"{path}: the file is empty; expected a header and rows")
    raise UserError(f"{path}, line {number}: expected a header and rows, found only blank lines and comments")


def _split_by(path: Path, number: int, text: str, candidates: tuple[str, ...]) -> dict[str, list[str]]:
    rows = {}
    for candidate in candidates:
        try:
            rows[candidate] = split_fields(text, candidate)
        except FieldError:
            continue
    return rows or {candidates[0]: split_row(path, number, text, candidates[0])}


def _find_in_header(row: list[str], roles: tuple[Role, ...], options: TableOptions) -> list[int] | None:
    """The columns, if the row is a header that names them. Without --no-header a number is a name too."""
    numbers = {} if options.has_header else {role: text for role, text in options.chosen.items() if text.isdecimal()}
    named = {role: text for role, text in options.chosen.items() if role not in numbers}
    columns = [column for column in find_columns(row, roles, named) if column is not None]
    if len(columns) < len(roles):
        return None
    given = {role.name: numbers.get(role.name, str(column + 1)) for role, column in zip(roles, columns)}
    return number_columns(len(row), roles, given)


def _missing(row: list[str], roles: tuple[Role, ...], options: TableOptions) -> str:
    names = {plain_name(name) for name in row}
    absent = [
        role for role in roles if role.name in options.chosen and plain_name(options.chosen[role.name]) not in names
    ]
    return f"there is no column {shorten(options.chosen[absent[0].name])!r}" if absent else ""


def _with_header(separator, columns, row, roles, number, text, skipped) -> Layout:
    return Layout(
        separator=separator,
        columns=tuple(columns),
        header=row,
        width=len(row),
        first_row=number + 1,
        is_known=all(plain_name(row[column]) in role.known for role, column in zip(roles, columns)),
        is_padded=are_padded(text, separator),
        skipped=skipped,
    )


def _check_separator(path: Path, number: int, text: str, rows: dict[str, list[str]]) -> None:
    """Refuse a first row that may be separated by something else than it seems: no header confirms it."""
    problem = ""
    if len(rows) > 1:
        problem = "found " + " and ".join(repr(separator) for separator in rows)
    elif has_stray_quote(text, next(iter(rows))):
        problem = "found a quote within a field"
    if problem:
        raise UserError(
            f"{path}, line {number}: expected one kind of separator, {problem}; write sep=, (or what separates the "
            "columns) as a first line of the file"
        )


def _without_header(path, rows, roles, options, number, skipped) -> Layout:
    ((separator, row),) = rows.items()
    half_known = [name for name in row if _is_like_a_name(name, roles)]
    if half_known:
        raise wanted_columns(
            path, number, roles, row, f"{shorten(half_known[0].strip())!r} is a name of a column, so this is no row"
        )
    try:
        columns = number_columns(len(row), roles, options.chosen)
    except ColumnError as error:
        raise UserError(f"{path}, line {number}: {error}; found {shorten(','.join(row))!r}") from None
    if columns is None:
        wished = " and ".join(role.name for role in roles)
        numbers = " ".join(f"{role.option} NUMBER" for role in roles if role.option)
        raise UserError(
            f"{path}, line {number}: expected {len(roles)} columns, {wished}, separated by comma, tab or semicolon, "
            f"found {len(row)}: {shorten(separator.join(row))!r}; give {numbers}, counted from 1"
        )
    return Layout(separator, tuple(columns), [], len(row), number, False, False, skipped)


def _is_like_a_name(text: str, roles: tuple[Role, ...]) -> bool:
    word = plain_name(re.sub(r"^\W+|\W+$", "", text))
    return len(word) > 1 and any(word in role.known for role in roles)
