"""Where the time of a step goes."""

from __future__ import annotations

import time

STAGES = (
    "sample",
    "gather",
    "fetch",
    "forward",
    "backward",
    "aggregate",
    "sync_sparse",
    "sync_dense",
    "update",
    "wait",
)


class StageClock:
    """Adds up seconds by stage; each lap goes to the stage that it ends."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._last = time.perf_counter()

    def start(self) -> None:
        """Begin a lap; what came before is not counted."""
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now
