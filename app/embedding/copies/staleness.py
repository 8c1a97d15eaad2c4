"""How stale a copy of a row may be, and how stale those were that were used (GLPilot).

Rarely sampled rows cause most of the loading and are hardly ever updated, so a copy of them stays good for many steps.
A row's bound is in steps: at most `max_steps`, and at most the steps in which the row is expected to receive
`max_missed_updates` updates.
"""

from __future__ import annotations

import numpy as np

UNBOUNDED_STEPS = 2**30
NUM_BINS = 1025  # of the histograms; the last one is open


def max_ages(update_rates: np.ndarray, max_steps: int, max_missed_updates: int) -> np.ndarray:
    """The bound of each row in steps, int32 [n].

    Args:
        update_rates: float32 [n], expected updates per step.
        max_steps, max_missed_updates: -1 for no limit.
    """
    limit = UNBOUNDED_STEPS if max_steps < 0 else min(max_steps, UNBOUNDED_STEPS)
    if max_missed_updates < 0:
        return np.full(len(update_rates), limit, np.int32)
    if max_missed_updates == 0:  # a row that was never seen to be updated may be, all the same
        return np.zeros(len(update_rates), np.int32)
    steps = max_missed_updates / np.maximum(update_rates.astype(np.float64), 1e-12)
    return np.minimum(steps, limit).astype(np.int32)


class StalenessRecord:
    """How stale the rows were that copies gave.

    Attributes:
        steps: int64 [NUM_BINS]: rows served, by steps since they were read.
        missed_updates: int64 [NUM_BINS]: rows read again, by the updates that their old copy had missed.
    """

    def __init__(self) -> None:
        self.steps = np.zeros(NUM_BINS, np.int64)
        self.missed_updates = np.zeros(NUM_BINS, np.int64)

    def add_served(self, ages: np.ndarray) -> None:
        """Count rows that were served `ages` [n] steps after they were read."""
        self.steps += np.bincount(np.minimum(ages, NUM_BINS - 1), minlength=NUM_BINS)
