"""Characters that have no place in a table: controls, line ends of other kinds, blanks that are none."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from ..errors import UserError
from .text_file import decode

# C0 without tab and line feed, DEL, C1, the line and paragraph separators, and a byte order mark that is not first.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
FORBIDDEN_BEYOND_ASCII = re.compile("[\x80-\x9f\u2028\u2029\ufeff]")
CONTROLS = bytes([*range(9), *range(11, 13), *range(14, 32), 127])  # a return is looked at by itself
BLANKS = " \t"  # what may stand around a value


def describe_character(character: str) -> str:
    """Code and name, such as "U+00A0 (NO-BREAK SPACE)"."""
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'a control character')})"


def check_characters(path: Path, number: int, line: bytes) -> str:
    """A line, without what ends it, as text.

    Raises:
        UserError: it is not UTF-8, or holds a control character, with its column.
    """
    text = decode(path, number, line)
    found = FORBIDDEN.search(text)
    if found:
        hint = "end lines with a line feed" if found[0] == "\r" else "remove it"
        raise UserError(
            f"{path}, line {number}, column {found.start() + 1}: expected printable text, found "
            f"{describe_character(found[0])}; {hint}"
        )
    return text


def odd_character(text: str) -> str | None:
    """The character that keeps a text from being a number, described, if all others could be of one."""
    odd = [character for character in text if not (character.isascii() or character.isalpha())]
    rest = "".join(character for character in text if character not in odd)
    is_number = re.fullmatch(r"[ \t]*[+-]?[0-9.]*([eE][+-]?[0-9]+)?[ \t]*", rest) is not None
    return describe_character(odd[0]) if odd and is_number else None


def odd_blank(text: str) -> str | None:
    """The blank at either end of a text that is neither space nor tab, described, if there is one."""
    for character in (text[:1], text[-1:]):
        if character.isspace() and character not in BLANKS:
            return describe_character(character)
    return None
