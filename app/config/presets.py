"""The presets: named sets of values that a config can start from."""

from __future__ import annotations

from typing import Any

# A preset holds what differs from the defaults.
_SYNCHRONOUS = {"staleness": {"max_steps": 0}, "cache": {"rows": 0}, "aggregation": {"window_steps": 1}}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "glpilot": {},
    "synchronous": _SYNCHRONOUS,
    "dgl": {**_SYNCHRONOUS, "aggregation": {"window_steps": 1, "on_host": False}, "sync": {"cold": "alltoall"}},
    "p3": {**_SYNCHRONOUS, "embedding": {"split": "dimension"}},
}
DEFAULT_PRESET = "glpilot"


def preset(name: str) -> dict[str, Any]:
    """What a preset sets, by section; a copy, to be changed freely."""
    return {section: dict(values) for section, values in PRESETS[name].items()}
