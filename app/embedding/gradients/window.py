"""The window of local gradient aggregation (GLPilot): gradients of remote rows wait, to be summed before they are sent.

A row's gradient waits until `window_steps` batches have passed, its own included, or until a batch touches the row
again, whose gradient is added. So no more than two batches are ever summed into one update, whose step (Adam's above
all) does not grow with the number of gradients in it. What is due after a batch is sent while the next one computes.
Where there is no room to wait, gradients are due at once.
"""

from __future__ import annotations

import numba
import numpy as np

from glpilot.app.embedding.gradients.aggregate import sum_by_id
from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row
from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.rows.slots import EMPTY, allocate_slots, find_empty, find_slot, look_ahead


class GradientWindow:
    """Gradients that wait in at most `num_rows` slots, and those that are due. Knows nothing of ranks.

    Every gradient that was put in comes out exactly once, from `take` or from `drain`.
    """

    def __init__(self, window_steps: int, num_rows: int, dim: int):
        """`window_steps` is at least 2: the last step of a window is the one in which the gradient is sent."""
        self._num_waiting_steps = window_steps - 2
        self._slots = allocate_slots(num_rows if self._num_waiting_steps else 0)
        self._steps = np.zeros(self._slots.size, np.int64)
        self._grads = np.zeros((self._slots.size, dim), np.float32)
        self._due = np.empty(0, np.int64), np.empty((0, dim), np.float32)

    def __len__(self) -> int:
        """Rows whose gradients wait in slots."""
        return int(np.count_nonzero(self._slots != EMPTY))

    def put(self, nids: np.ndarray, positions: np.ndarray, grads: np.ndarray, step: int) -> None:
        """Add the gradients of a batch. What was due must have been taken.

        Args:
            nids, positions: integers [n], distinct nids: grads[positions[i]] belongs to row nids[i].
            grads: float32 [any, dim].
        """
        assert not len(self._due[0])
        flat = self._slots.reshape(-1)
        overdue = np.flatnonzero((flat != EMPTY) & (self._steps <= step - self._num_waiting_steps))
        due_nids = np.empty(len(nids) + len(overdue), np.int64)
        due_grads = np.empty((len(due_nids), self._grads.shape[1]), np.float32)
        num_due = _add(self._slots, self._steps, self._grads, nids, positions, grads, step, due_nids, due_grads)
        overdue = overdue[(flat[overdue] != EMPTY) & (self._steps[overdue] < step)]  # not those that went, or came, now
        last = num_due + len(overdue)
        due_nids[num_due:last], due_grads[num_due:last] = flat[overdue], self._grads[overdue]
        flat[overdue] = EMPTY
        self._due = due_nids[:last], due_grads[:last]

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """What is due: distinct nids int64 [num_due], and their sums float32 [num_due, dim]."""
        due = self._due
        self._due = due[0][:0], due[1][:0]
        return due

    def drain(self) -> tuple[np.ndarray, np.ndarray]:
        """All that waits or is due, as `take` gives it."""
        flat = self._slots.reshape(-1)
        taken = np.flatnonzero(flat != EMPTY)
        due_nids, due_grads = self.take()
        pieces = [Segment(due_nids, np.arange(len(due_nids)), due_grads), Segment(flat[taken], taken, self._grads)]
        drained = sum_by_id(pieces, self._grads.shape[1])
        flat[taken] = EMPTY
        return drained

    def state(self) -> dict[str, np.ndarray]:
        """All that decides what comes out, as arrays, for a checkpoint."""
        taken = np.flatnonzero(self._slots.reshape(-1) != EMPTY)
        return {
            "slots": taken,
            "nids": self._slots.reshape(-1)[taken],
            "steps": self._steps[taken],
            "grads": self._grads[taken],
            "due_nids": self._due[0],
            "due_grads": self._due[1],
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Take over what `state` gave, from a window of the same size."""
        self._slots[...] = EMPTY
        slots = state["slots"]
        self._slots.reshape(-1)[slots] = state["nids"]
        self._steps[slots], self._grads[slots] = state["steps"], state["grads"]
        self._due = state["due_nids"], state["due_grads"]


@numba.njit(cache=True, nogil=True)
def _add(slots, steps, sums, nids, positions, grads, step, due_nids, due_grads):
    flat = slots.reshape(-1)
    dim = sums.shape[1]
    num_due = 0
    for i in range(len(nids)):
        look_ahead(slots, sums, nids, i)
        if i + LOOKAHEAD < len(nids):
            prefetch_row(grads, positions[i + LOOKAHEAD])
        nid, position = nids[i], positions[i]
        grad = grads[position]
        slot = find_slot(slots, nid)
        if slot >= 0:  # touched again
            due_nids[num_due] = nid
            target, waiting = due_grads[num_due], sums[slot]
            for d in range(dim):
                target[d] = waiting[d] + grad[d]
            num_due += 1
            flat[slot] = EMPTY
            continue
        slot = find_empty(slots, nid)
        if slot < 0:
            due_nids[num_due] = nid
            target = due_grads[num_due]
            for d in range(dim):
                target[d] = grad[d]
            num_due += 1
            continue
        flat[slot] = nid
        steps[slot] = step
        target = sums[slot]
        for d in range(dim):
            target[d] = grad[d]
    return num_due
