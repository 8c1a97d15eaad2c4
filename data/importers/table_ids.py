"""Ids of nodes, as a table's columns have them: integers, integers that were written as floats, or strings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import UserError
from .characters import odd_character
from .csv_table import CsvTable
from .numerals import is_integer, is_number, whole_float

INT64_RANGE = range(-(2**63), 2**63)
AS_NAMES = "give --ids string if the ids are names"


def read_ids(table: CsvTable, positions: list[int], kind: str) -> list[np.ndarray]:
    """Columns of ids, each int64 [num_rows], or object [num_rows] of str.

    Args:
        positions: which roles of the table they are.
        kind: "integer" or "string"; "auto" takes integers if all are, strings if none is, and refuses a mixture,
            which is far more often a damaged row than a name that happens to be a number.

    Raises:
        UserError: an id is missing, or not of the kind, with its line; or two ids would become one.
    """
    if kind != "string":
        arrays = table.read_integers(positions)
        if arrays is not None:
            table.account.ids = "integer"
            return arrays

    import pandas

    texts = table.read_texts(positions)
    distinct = pandas.unique(np.concatenate(texts))
    if kind == "string" or (kind == "auto" and _are_names(distinct)):
        table.check_names(positions, distinct)
        table.account.ids = "string"
        return texts
    numbers = _as_integers(distinct)
    if numbers is None:
        raise _not_integer(table, positions, distinct, kind)
    _check_integers(table, positions, distinct, numbers)
    table.account.ids = "integer" if all(map(is_integer, distinct)) else "integer, written as floats"
    codes, order = pandas.factorize(np.concatenate(texts))
    value_of = dict(zip(distinct, numbers))
    ids = np.array([value_of[text] for text in order], dtype=np.int64)[codes]
    return np.split(ids, np.cumsum([len(text) for text in texts])[:-1])


def as_integer(text: str) -> int | None:
    """The integer that an id stands for, written as such or as a whole float."""
    return int(text) if is_integer(text) else whole_float(text)


def _are_names(distinct: Iterable[str]) -> bool:
    """None is a whole number, and some are no numbers at all."""
    return all(as_integer(text) is None for text in distinct) and not all(map(is_number, distinct))


def _as_integers(distinct: np.ndarray) -> list[int] | None:
    """The values if all are integers, or if all are integers written as floats."""
    if all(map(is_integer, distinct)):
        return [int(text) for text in distinct]
    values = [whole_float(text) for text in distinct]
    return None if None in values else [value for value in values if value is not None]


def _first_line(table: CsvTable, positions: list[int], is_wrong) -> tuple[int, str]:
    """The first line with a wrong id in any of the columns."""
    found = []
    for position in positions:
        try:
            found.append(table.first_line(position, is_wrong))
        except UserError:
            continue
    if not found:
        raise UserError(f"{table.path}: the ids cannot be read as integers; {AS_NAMES}")
    return min(found, key=lambda place: place[0])


def _not_integer(table: CsvTable, positions: list[int], distinct: np.ndarray, kind: str) -> UserError:
    """The error of ids that are not all integers."""
    if kind != "string" and not any(map(is_integer, distinct)) and all(map(_is_plain_float, distinct)):
        line, value = _first_line(table, positions, lambda text: whole_float(text) is None)
    else:
        line, value = _first_line(table, positions, lambda text: not is_integer(text))
    odd = odd_character(value)
    if odd:
        return UserError(f"{table.path}, line {line}: the id {value!r} is not an integer: it holds {odd}; remove it")
    if kind == "integer":
        hint = "; mend it"
    elif any(map(is_integer, distinct)):
        hint = f" while others are; mend it, or {AS_NAMES}"
    else:
        hint = f"; expected digits only, or whole numbers such as 1.0 in every row; mend it, or {AS_NAMES}"
    return UserError(f"{table.path}, line {line}: the id {value!r} is not an integer{hint}")


def _is_plain_float(text: str) -> bool:
    return is_number(text) and not is_integer(text)


def _check_integers(table: CsvTable, positions: list[int], distinct: np.ndarray, numbers: list[int]) -> None:
    """Refuse integers that do not fit, or of which one has more zeros than another and may be a name."""
    if any(number not in INT64_RANGE for number in numbers):
        line, value = _first_line(table, positions, lambda text: as_integer(text) not in INT64_RANGE)
        raise UserError(f"{table.path}, line {line}: the id {value!r} does not fit 64 bits; give --ids string")
    spelled: dict[int, str] = {}
    for text, number in zip(distinct, numbers):
        first = spelled.setdefault(number, text)
        if first.lstrip("+-") != text.lstrip("+-"):
            line, value = _first_line(table, positions, lambda found, text=text: found == text)
            raise UserError(
                f"{table.path}, line {line}: the id {value!r} is the same integer as {first!r}; spell it in one way, "
                "or give --ids string if the ids are names"
            )
