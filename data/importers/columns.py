"""Which column of a table is what: by a known name, or by the one that the user gave; never by its position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from .text_file import shorten

# Source and target are taken together, or each from a pair whose names cannot mean anything else.
PLAIN_PAIRS = (
    ("src", "dst"),
    ("source", "target"),
    ("source", "dest"),
    ("source", "destination"),
    ("src_id", "dst_id"),
    ("source_id", "target_id"),
    ("source_node", "target_node"),
    ("src_node", "dst_node"),
    ("from_node", "to_node"),
    ("from_id", "to_id"),
    ("fromnodeid", "tonodeid"),
    ("from_node_id", "to_node_id"),
)
PAIRS = (
    *PLAIN_PAIRS,
    ("from", "to"),
    ("head", "tail"),
    ("u", "v"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("citing", "cited"),
    ("follower", "followee"),
)


@dataclass(frozen=True)
class Role:
    """What a column is for, the names it is known by, and the option that names another ("" if there is none)."""

    name: str
    known: tuple[str, ...]
    option: str


SOURCE = Role("source", tuple(dict.fromkeys(source for source, _ in PAIRS)), "--source")
TARGET = Role("target", tuple(dict.fromkeys(target for _, target in PAIRS)), "--target")
NODE = Role("node", ("node", "id", "node_id", "nid", "nodeid", "vertex", "vertex_id"), "--node")
LABEL = Role("label", ("label", "class", "labels", "y"), "--label")
SPLIT = Role("split", ("split", "mask", "set"), "")
EDGE_ROLES = (SOURCE, TARGET)


class ColumnError(UserError):
    """The columns cannot be told, though some have the names that are looked for."""


def plain_name(name: str) -> str:
    """A column's name as it is compared: case and blanks around do not matter."""
    return name.strip().lower()


def find_columns(header: list[str], roles: tuple[Role, ...], chosen: dict[str, str]) -> list[int | None]:
    """The column of every role, None where no name fits.

    Args:
        chosen: role → the column that the user named.

    Raises:
        ColumnError: several columns fit a role, or one fits two.
    """
    found = [_find(header, role, chosen.get(role.name)) for role in roles]
    if roles == EDGE_ROLES and None not in found and not any(role.name in chosen for role in roles):
        names = tuple(plain_name(header[column]) for column in found if column is not None)
        plain = names[0] in {source for source, _ in PLAIN_PAIRS} and names[1] in {target for _, target in PLAIN_PAIRS}
        if names not in PAIRS and not plain:
            raise ColumnError(f"{names[0]!r} and {names[1]!r} are no known pair of names")
    taken = [column for column in found if column is not None]
    if len(set(taken)) < len(taken):
        raise ColumnError(f"the column {header[taken[0]].strip()!r} was chosen twice")
    return found


def number_columns(width: int, roles: tuple[Role, ...], chosen: dict[str, str]) -> list[int] | None:
    """The column of every role in a table without a header, by the numbers that the user gave, the others in order;
    None if they do not tell.

    Raises:
        ColumnError: a number is out of range, or given twice.
    """
    numbers = {role: chosen[role.name] for role in roles if role.name in chosen}
    for role, text in numbers.items():
        if not text.isdecimal() or not 1 <= int(text) <= width:
            raise ColumnError(f"{role.option} {text!r}: expected a column's number from 1 to {width}")
    taken = [int(text) - 1 for text in numbers.values()]
    if len(set(taken)) < len(taken):
        raise ColumnError(f"the column {taken[0] + 1} was chosen twice")
    if len(numbers) < len(roles) != width:
        return None
    rest = iter(column for column in range(width) if column not in taken)
    return [int(numbers[role]) - 1 if role in numbers else next(rest) for role in roles]


def wanted_columns(path: Path, number: int, roles: tuple[Role, ...], header: list[str], reason: str = "") -> UserError:
    """The error of a table whose columns cannot be told: what it has, and how to choose."""
    known = " or ".join(",".join(names) for names in _examples(roles))
    options = " ".join(f"{role.option} COLUMN" for role in roles if role.option)
    found = ", ".join(repr(shorten(name.strip())) for name in header[:20]) + (", …" if len(header) > 20 else "")
    return UserError(
        f"{path}, line {number}: expected a header with columns such as {known}, found the columns {found}"
        + (f" ({reason})" if reason else "")
        + (f"; choose with {options}" if options else "; rename them")
        + ", or give --no-header if the first line is data"
    )


def _examples(roles: tuple[Role, ...]) -> list[tuple[str, ...]]:
    return list(PAIRS[:2]) if roles == EDGE_ROLES else [tuple(role.known[0] for role in roles)]


def _find(header: list[str], role: Role, wished: str | None) -> int | None:
    if wished is None:
        fitting = [column for column, name in enumerate(header) if plain_name(name) in role.known]
    else:
        fitting = [column for column, name in enumerate(header) if name.strip() == wished.strip()]
        fitting = fitting or [column for column, name in enumerate(header) if plain_name(name) == plain_name(wished)]
    if len(fitting) > 1:
        names = ", ".join(repr(header[column].strip()) for column in fitting)
        raise ColumnError(f"{names} could each be the {role.name}")
    return fitting[0] if fitting else None
