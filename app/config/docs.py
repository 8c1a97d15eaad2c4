"""The tables of config keys in README.md, made from the classes in keys.py so that they cannot drift.

python -m glpilot.app.config.docs README.md             rewrites the section between the two markers
python -m glpilot.app.config.docs --check README.md     exit code 1 if the section is not what it would write
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

from glpilot.app.config.keys import AUTO, RowCount, list_keys
from glpilot.app.config.presets import DEFAULT_PRESET, PRESETS, preset
from glpilot.data.errors import UserError

BEGIN = "<!-- begin of the config keys, made by: python -m glpilot.app.config.docs README.md -->"
END = "<!-- end of the config keys -->"

_TYPE_NAMES = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}
_LIMITS = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))


def render() -> str:
    """The section: a table for each part of the config, and what the presets set."""
    tables: dict[str, list[str]] = {}
    for key, field in list_keys():
        row = (f"`{key}`", f"`{show_value(field.default)}`", describe_values(field), field.description or "")
        tables.setdefault(key.split(".")[0], []).append("| " + " | ".join(map(_escape, row)) + " |")
    heading = "| key | default | values | meaning |\n|---|---|---|---|"
    blocks = ["\n".join([heading, *rows]) for rows in tables.values()]
    presets = [f"- `{name}`{_describe_preset(name)}" for name in PRESETS]
    return "\n\n".join([*blocks, "Presets (`--preset NAME`):\n\n" + "\n".join(presets)])


def show_value(value: Any) -> str:
    """A value as it is typed after its flag."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def describe_values(field: Any) -> str:
    """What a key accepts, from its field's type and limits."""
    annotation = field.annotation
    if annotation == RowCount:
        return f"`{AUTO}`, or whole number, ≥ 0"
    choices = [choice for choice in get_args(annotation) if isinstance(choice, str)]
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if get_origin(annotation) is list:
        return f"{_TYPE_NAMES[get_args(annotation)[0]]}s with commas"
    limits = [
        f"{sign} {_show_limit(getattr(limit, name))}"
        for limit in field.metadata
        for name, sign in _LIMITS
        if getattr(limit, name, None) is not None
    ]
    return ", ".join([_TYPE_NAMES[annotation], *limits])


def replace_section(text: str) -> str:
    """A page with its section made anew.

    Raises:
        UserError: the page does not hold both markers, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise UserError(f"expected the lines {BEGIN!r} and {END!r}, once each and in this order")
    return f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m glpilot.app.config.docs", description="write the tables of config keys"
    )
    parser.add_argument("page", type=Path, help="the page with the two markers, such as README.md")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the page has drifted")
    arguments = parser.parse_args()
    try:
        text = arguments.page.read_text()
        wanted = replace_section(text)
    except (OSError, UserError) as error:
        print(f"{arguments.page}: {error}", file=sys.stderr)
        return 2
    if text == wanted:
        return 0
    if arguments.check:
        print(f"{arguments.page}: the config keys have changed; run: {parser.prog} {arguments.page}", file=sys.stderr)
        return 1
    arguments.page.write_text(wanted)
    return 0


def _describe_preset(name: str) -> str:
    values = [
        f"`{section}.{key}` {show_value(value)}"
        for section, settings in preset(name).items()
        for key, value in settings.items()
    ]
    default = ", the default" if name == DEFAULT_PRESET else ""
    return f"{default}: " + (", ".join(values) if values else "every key at its default")


def _show_limit(limit: float) -> str:
    if isinstance(limit, int) and limit > 2**20 and limit & (limit - 1) == 0:
        return f"2^{limit.bit_length() - 1}"
    return str(limit)


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
