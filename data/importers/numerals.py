"""Numbers as tables write them: integers, and whole numbers that were written as floats."""

from __future__ import annotations

import re

INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses to convert more digits
WHOLE_FIXED = re.compile(r"([+-]?[0-9]{1,16})\.0+")
WHOLE_SCIENTIFIC = re.compile(r"([+-]?)([0-9])\.([0-9]+)[eE]\+?([0-9]{1,2})")
NUMBER = re.compile(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
MAX_EXACT = 2**53  # float64 tells all integers below apart


def is_integer(text: str) -> bool:
    return INTEGER.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether it looks like a number of any kind, with a decimal comma too."""
    return NUMBER.fullmatch(text) is not None


def whole_float(text: str) -> int | None:
    """The integer that a float such as 1.0 or 1.000e+00 stands for; None if it is no such float.

    All digits of the integer have to be there: 1.23e+03 may have been 1234, and above 2^53 a float may have been one of
    several integers.
    """
    value = _whole_fixed(text) if "e" not in text and "E" not in text else _whole_scientific(text)
    return value if value is not None and abs(value) < MAX_EXACT else None


def _whole_fixed(text: str) -> int | None:
    found = WHOLE_FIXED.fullmatch(text)
    return int(found[1]) if found else None


def _whole_scientific(text: str) -> int | None:
    found = WHOLE_SCIENTIFIC.fullmatch(text)
    if found is None:
        return None
    sign, digit, decimals, exponent = found[1], found[2], found[3], int(found[4])
    if len(decimals) < exponent or decimals[exponent:].strip("0"):
        return None
    return int(sign + digit + decimals[:exponent])
