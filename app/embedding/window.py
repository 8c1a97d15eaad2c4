"""The window of local gradient aggregation (GLPilot): gradients of remote rows wait, to be summed before they are sent.

A row's gradient waits for up to `window_steps` batches. It is sent earlier, with the new gradient added, as soon as
a batch touches the row again: so no more than two batches are ever summed into one update, whose step (Adam's above
all) does not grow with the number of gradients in it. Where there is no room to wait, gradients are sent at once.
"""
from __future__ import annotations

import numba
import numpy as np

from glpilot.app.embedding.slots import EMPTY, allocate_slots, find_empty, find_slot


class GradientWindow:
    """Gradients of at most `num_rows` rows that wait. Knows nothing of ranks.

    Every gradient that was added comes out exactly once, from `add` or from `drain`.
    """

    def __init__(self, window_steps: int, num_rows: int, dim: int):
        self._window_steps = window_steps
        self._slots = allocate_slots(num_rows if window_steps > 1 else 0)
        self._steps = np.zeros(self._slots.size, np.int64)
        self._grads = np.zeros((self._slots.size, dim), np.float32)

    def __len__(self) -> int:
        """Rows whose gradients wait."""
        return int(np.count_nonzero(self._slots != EMPTY))

    def add(
        self, nids: np.ndarray, positions: np.ndarray, grads: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add the gradients of a batch, and give back what is due.

        Args:
            nids, positions: integers [n], distinct nids: grads[positions[i]] belongs to row nids[i].
            grads: float32 [any, dim].

        Returns:
            distinct nids int64 [num_due], and their sums float32 [num_due, dim].
        """
        flat = self._slots.reshape(-1)
        overdue = np.flatnonzero((flat != EMPTY) & (self._steps <= step - self._window_steps + 1))
        due_nids = np.empty(len(nids) + len(overdue), np.int64)
        due_grads = np.empty((len(due_nids), self._grads.shape[1]), np.float32)
        num_due = _add(self._slots, self._steps, self._grads, nids, positions, grads, step, due_nids, due_grads)
        overdue = overdue[(flat[overdue] != EMPTY) & (self._steps[overdue] < step)]  # not those that went, or came, now
        last = num_due + len(overdue)
        due_nids[num_due:last], due_grads[num_due:last] = flat[overdue], self._grads[overdue]
        flat[overdue] = EMPTY
        return due_nids[:last], due_grads[:last]

    def drain(self) -> tuple[np.ndarray, np.ndarray]:
        """All that waits, as `add` gives it; nothing waits afterwards."""
        flat = self._slots.reshape(-1)
        taken = np.flatnonzero(flat != EMPTY)
        nids, grads = flat[taken].copy(), self._grads[taken]
        flat[taken] = EMPTY
        return nids, grads

    def state(self) -> dict[str, np.ndarray]:
        """What waits, as arrays, for a checkpoint."""
        taken = np.flatnonzero(self._slots.reshape(-1) != EMPTY)
        return {
            "slots": taken, "nids": self._slots.reshape(-1)[taken], "steps": self._steps[taken],
            "grads": self._grads[taken],
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Take over what `state` gave, from a window of the same size."""
        self._slots[...] = EMPTY
        slots = state["slots"]
        self._slots.reshape(-1)[slots] = state["nids"]
        self._steps[slots], self._grads[slots] = state["steps"], state["grads"]


@numba.njit(cache=True, nogil=True)
def _add(slots, steps, sums, nids, positions, grads, step, due_nids, due_grads):
    flat = slots.reshape(-1)
    dim = sums.shape[1]
    num_due = 0
    for i in range(len(nids)):
        nid, position = nids[i], positions[i]
        slot = find_slot(slots, nid)
        if slot >= 0:  # touched again
            due_nids[num_due] = nid
            for d in range(dim):
                due_grads[num_due, d] = sums[slot, d] + grads[position, d]
            num_due += 1
            flat[slot] = EMPTY
            continue
        slot = find_empty(slots, nid)
        if slot < 0:
            due_nids[num_due] = nid
            for d in range(dim):
                due_grads[num_due, d] = grads[position, d]
            num_due += 1
            continue
        flat[slot] = nid
        steps[slot] = step
        for d in range(dim):
            sums[slot, d] = grads[position, d]
    return num_due
