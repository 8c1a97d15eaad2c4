"""The fields of one line, exactly: quotes, blanks around values, and what is no well-formed field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from .characters import BLANKS

SEPARATORS = (",", "\t", ";", "|")
SEPARATOR_NAMES = {",": "comma", "\t": "tab", ";": "semicolon"}


class FieldError(ValueError):
    """A line cannot be told into fields. `column` counts characters from 1."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column


def split_fields(text: str, separator: str) -> list[str]:
    """The fields of a line, with the blanks around them but without the quotes around a quoted one.

    A quote opens a quoted field only where the field begins, as the parser of pandas has it; within it a doubled quote
    is a quote.

    Raises:
        FieldError: a quoted field does not end on the line, or has text after its end, or a backslash stands where
            programs that escape by backslashes would mean something else.
    """
    for escape in ('\\"', "\\" + separator):
        if escape in text:
            raise FieldError(
                text.index(escape) + 1,
                f"found {escape!r}, which some programs write for {escape[1:]!r} and some do not",
            )
    return [value for _, value in _fields(text, separator)]


def are_padded(text: str, separator: str) -> bool:
    """Whether a blank stands behind every separator of a line, and there is one."""
    starts = [start for start, _ in _fields(text, separator)][1:]
    blanks = tuple(BLANKS.replace(separator, ""))
    return bool(starts) and all(text[start : start + 1] in blanks for start in starts)


def has_stray_quote(text: str, separator: str) -> bool:
    """Whether a quote stands within a field that is not quoted, as where something else separates the fields."""
    blanks = BLANKS.replace(separator, "")
    return any('"' in value and text[start:].lstrip(blanks)[:1] != '"' for start, value in _fields(text, separator))


def split_row(path: Path, number: int, text: str, separator: str) -> list[str]:
    """The same for a line of a file.

    Raises:
        UserError: in place of a FieldError.
    """
    try:
        return split_fields(text, separator)
    except FieldError as error:
        raise UserError(
            f"{path}, line {number}, column {error.column}: expected fields that are plain, or in double quotes on one "
            f"line; {error}; mend the line, and double the quotes within a field"
        ) from None


def is_blank(text: str, separator: str) -> bool:
    """Whether pandas passes over a line."""
    return not text.strip(BLANKS.replace(separator, ""))


def _fields(text: str, separator: str) -> Iterator[tuple[int, str]]:
    """Where every field begins, and its value."""
    start, end = 0, -1
    while end < len(text):
        start = end + 1
        value, end = _read_field(text, start, separator)
        yield start, value


def _read_field(text: str, start: int, separator: str) -> tuple[str, int]:
    """The field that begins at `start`, and where it ends: at a separator or at the end of the text."""
    opening, blanks = start, BLANKS.replace(separator, "")
    while opening < len(text) and text[opening] in blanks:
        opening += 1
    if text[opening : opening + 1] != '"':
        end = _find(text, separator, start)
        return text[start:end], end
    closing = text.find('"', opening + 1)
    while closing >= 0 and text[closing + 1 : closing + 2] == '"':
        closing = text.find('"', closing + 2)
    if closing < 0:
        raise FieldError(opening + 1, "found a quote that opens here and does not close on its line")
    end = _find(text, separator, closing)
    if text[closing + 1 : end].strip(blanks):
        raise FieldError(closing + 2, "found text after a closing quote")
    return text[opening + 1 : closing].replace('""', '"'), end


def _find(text: str, separator: str, start: int) -> int:
    found = text.find(separator, start)
    return len(text) if found < 0 else found
