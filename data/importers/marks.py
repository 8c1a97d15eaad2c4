"""Marks of no label, the same in every format."""

from __future__ import annotations

from .numerals import MAX_EXACT, is_integer, is_number, whole_float

DEFAULT_MARKS = ("-1", "", "nan", "na", "none", "null")
MAX_DIGITS = 15  # a float tells all numbers of so many digits apart


def parse_marks(text: str) -> tuple[str, ...]:
    """Read "-1,nan,?": the labels that mean that there is none. An empty field is the empty label."""
    return tuple(plain_label(mark.strip()).lower() for mark in text.split(","))


def plain_label(text: str) -> str:
    """A label as it is told from others: 1, 01, +1 and 1.0 are one, and so are 0.5 and 0.50."""
    if is_integer(text):
        return str(int(text))
    value = whole_float(text)
    if value is not None:
        return str(value)
    if is_number(text) and "," not in text and 0 < sum(map(str.isdigit, text)) <= MAX_DIGITS:
        number = float(text)
        return str(int(number)) if number.is_integer() and abs(number) < MAX_EXACT else repr(number)
    return text
