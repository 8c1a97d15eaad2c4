"""Which of GLPilot's techniques a run uses, and how large: a value, chosen by app/training/techniques.py."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from glpilot.app.embedding.copies.hotness import Hotness


@dataclass(frozen=True)
class Techniques:
    """
    Attributes:
        hotness: None if no technique is on.
        hot_nids: int64 [num_hot], ascending: the rows of the device cache, the same on every rank.
        hot_sync, cold_sync: how gradients travel.
        sums_on_host: whether the ranks of a host sum gradients before they leave it.
        buffer_rows: copies that this rank keeps.
        max_steps, max_missed_updates: how stale a copy may be; no copy is ever used if `max_steps` is 0.
        prefetches: whether rows are asked for a step ahead.
        window_steps, window_rows: how long and how many gradients wait.
        report: lines that say what was chosen, and why.
    """

    hotness: Hotness | None
    hot_nids: np.ndarray
    hot_sync: str
    cold_sync: str
    sums_on_host: bool
    buffer_rows: int
    max_steps: int
    max_missed_updates: int
    prefetches: bool
    window_steps: int
    window_rows: int
    report: tuple[str, ...]

    def digest(self) -> str:
        """Equal if copies and gradients that wait in one run can wait on in another."""
        sizes = f"{self.buffer_rows} {self.window_steps} {self.window_rows}"
        return hashlib.blake2b(self.hot_nids.tobytes() + sizes.encode(), digest_size=16).hexdigest()
