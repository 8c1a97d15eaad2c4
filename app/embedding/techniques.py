"""Which of GLPilot's techniques a run uses, and how large: a value, chosen by app/training/technique_choice.py."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from glpilot.app.embedding.copies.hotness import Hotness


@dataclass(frozen=True)
class Techniques:
    """By default none is on, but for what may be done to every gradient.

    Attributes:
        cold_sync: how gradients of cold rows travel.
        sums_on_host: whether the ranks of a host sum gradients before they leave it.
        hotness: None if no technique is on.
        hot_nids: int64 [num_hot], ascending: the rows of the device cache, the same on every rank.
        hot_sync: how their gradients travel.
        buffer_rows: copies that this rank keeps.
        max_steps, max_missed_updates: how stale a copy may be; no copy is ever used if `max_steps` is 0.
        prefetches: whether rows are asked for a step ahead.
        window_steps, window_rows: how long and how many gradients wait.
        report: lines that say what was chosen, and why.
    """

    cold_sync: str
    sums_on_host: bool
    hotness: Hotness | None = None
    hot_nids: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    hot_sync: str = "sparse_allreduce"
    buffer_rows: int = 0
    max_steps: int = 0
    max_missed_updates: int = 0
    prefetches: bool = False
    window_steps: int = 1
    window_rows: int = 0
    report: tuple[str, ...] = ()

    def digest(self) -> str:
        """Equal if copies and gradients that wait in one run can wait on in another."""
        sizes = f"{self.buffer_rows} {self.window_steps} {self.window_rows}"
        return hashlib.blake2b(self.hot_nids.tobytes() + sizes.encode(), digest_size=16).hexdigest()
