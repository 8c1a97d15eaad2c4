"""What a user may say of tables, and what importing understood of each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .marks import DEFAULT_MARKS

NO_COMMENTS = "none"


@dataclass
class TableAccount:
    """What one table was read as.

    Attributes:
        columns: role → the column's name, or its number from 1 where there is no header.
        ids: "integer", "integer, written as floats" or "string"; empty if the table has none.
        skipped: reason → number of lines.
        marks: mark of no label → number of rows.
    """

    file: str
    columns: dict[str, str]
    has_header: bool
    separator: str
    num_rows: int = 0
    ids: str = ""
    skipped: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TableOptions:
    """How all tables of an import are read.

    Attributes:
        chosen: role (source, target, node, label) → the column that the user named.
        has_header: false if first lines are data.
        comments: what comment lines begin with, for such lines to be skipped; None if the user has said nothing of
            them; empty if all lines are data.
        marks: labels that mean that there is none, in lower case.
        accounts: what a table holds → what was understood of it; filled as tables are read.
    """

    chosen: dict[str, str] = field(default_factory=dict)
    has_header: bool = True
    comments: tuple[str, ...] | None = None
    marks: tuple[str, ...] = DEFAULT_MARKS
    accounts: dict[str, TableAccount] = field(default_factory=dict)
