"""What `glpilot import` understood of the tables that it read: lines to print, and JSON to keep in the graph's file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glpilot.data.importers.table_options import TableAccount

PLURALS = {"comment": "comment lines", "blank": "blank lines", "repeated header": "repeated headers"}
IDS = {"": "", "integer": "integer ids", "string": "string ids"}


def format_accounts(accounts: dict[str, TableAccount], has_header: bool) -> list[str]:
    """A line a table: columns, header, rows, ids, and lines that were skipped.

    Args:
        has_header: false if the user said that first lines are data.
    """
    return [f"{'read':<11}{subject} from {_describe(account, has_header)}" for subject, account in accounts.items()]


def format_unlabelled(num_unlabelled: int, marks: dict[str, int]) -> str:
    """How many nodes have no label, and what stood in its place."""
    found = ", ".join(f"{mark or 'empty'} ({count:,})" for mark, count in sorted(marks.items()))
    return f"unlabelled {num_unlabelled:,} nodes" + (f"; marked {found}" if found else "")


def to_json(accounts: dict[str, TableAccount], num_unlabelled: int, marks: dict[str, int]) -> str:
    """The same for programs."""
    tables = {subject: asdict(account) for subject, account in accounts.items()}
    return json.dumps({"tables": tables, "unlabelled": {"nodes": num_unlabelled, "marks": marks}}, ensure_ascii=False)


def _describe(account: TableAccount, has_header: bool) -> str:
    columns = ", ".join(f"{role} {name!r}" for role, name in account.columns.items())
    header = "no header, columns by number"
    if account.has_header:
        header = "by the header" if has_header else "by its header, which has the names that are looked for"
    parts = [f"{account.num_rows:,} rows; {columns} ({header})"]
    if account.ids:
        parts.append(IDS.get(account.ids, "ids are integers, written as floats"))
    skipped = [
        f"{count:,} {PLURALS.get(reason, reason) if count > 1 else _singular(reason)}"
        for reason, count in account.skipped.items()
    ]
    if skipped:
        parts.append("skipped " + ", ".join(skipped))
    return f"{account.file}: " + "; ".join(parts)


def _singular(reason: str) -> str:
    return PLURALS.get(reason, reason + "s")[:-1]
