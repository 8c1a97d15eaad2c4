"""A word to a person who waits."""

from __future__ import annotations

import sys


def show_stage(stage: str) -> None:
    """Say what the wait is for, at a terminal only."""
    if sys.stderr.isatty():
        print(f"{stage} …", file=sys.stderr, flush=True)
