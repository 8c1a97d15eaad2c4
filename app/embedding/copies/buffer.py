"""The staleness-bounded buffer (GLPilot): copies of remote rows that may be used again for a bounded time.

A row read in step r may be used in step t only if t - r is within the row's bound (staleness.py). `pull` and `push` are
where that is enforced.

Room is given by expected benefit: the fetches that a copy will still save, its access rate times the steps that it
may still be used.
"""

from __future__ import annotations

import numba
import numpy as np

from glpilot.app.embedding.copies.staleness import StalenessRecord
from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row
from glpilot.app.embedding.rows.slots import EMPTY, allocate_slots, find_empty, find_slot, look_ahead


class StalenessBuffer:
    """Copies of at most `num_rows` rows. Knows nothing of ranks: nids in, rows out."""

    def __init__(self, num_rows: int, dim: int, record: StalenessRecord):
        """What happens is counted in `record`."""
        self._record = record
        self._slots = allocate_slots(num_rows)
        size = self._slots.size
        self._read_steps = np.zeros(size, np.int64)
        self._max_ages = np.zeros(size, np.int32)
        self._rates = np.zeros(size, np.float32)
        self._counts = np.zeros(size, np.int32)
        self._rows = np.zeros((size, dim), np.float32)

    @property
    def num_slots(self) -> int:
        """Rows that fit."""
        return self._slots.size

    def __len__(self) -> int:
        """Rows that are there, still usable or not."""
        return int(np.count_nonzero(self._slots >= 0))

    def pull(self, nids: np.ndarray, positions: np.ndarray, step: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Serve what may be served: x[positions[i]] = the copy of row nids[i].

        Args:
            nids, positions: integers [n].
            x: float32 [any, dim].

        Returns:
            bool [n], which rows were served, and int64 [n], the steps since they were read (0 where not served).
        """
        served = np.zeros(len(nids), np.bool_)
        ages = np.zeros(len(nids), np.int64)
        _pull(self._slots, self._read_steps, self._max_ages, self._rows, nids, positions, step, x, served, ages)
        self._record.add_served(ages[served])
        return served, ages

    def can_serve(self, nids: np.ndarray, step: int) -> np.ndarray:
        """Which rows `pull` would serve in a step, bool [n]."""
        return _can_serve(self._slots, self._read_steps, self._max_ages, nids, step)

    def push(
        self,
        nids: np.ndarray,
        positions: np.ndarray,
        rows: np.ndarray,
        counts: np.ndarray,
        step: int,
        max_ages: np.ndarray,
        rates: np.ndarray,
    ) -> None:
        """Keep copies of rows that were read in `step`, where that is worth more than what lies there.

        Args:
            nids, positions: integers [n], distinct nids: rows[positions[i]] and counts[positions[i]] are row nids[i].
            rows: float32 [any, dim]. counts: int32 [any], update counts.
            max_ages: int32 [n], the bound of each row in steps.
            rates: float32 [n], expected accesses per step.
        """
        _push(
            self._slots,
            self._read_steps,
            self._max_ages,
            self._rates,
            self._counts,
            self._rows,
            self._record.missed_updates,
            nids,
            positions,
            rows,
            counts,
            step,
            max_ages,
            rates,
        )

    def state(self) -> dict[str, np.ndarray]:
        """All that decides what will be served, as arrays, for a checkpoint."""
        taken = np.flatnonzero(self._slots.reshape(-1) != EMPTY)
        arrays = {name: array[taken] for name, array in self._arrays().items()}
        return {"slots": taken, **arrays}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Take over what `state` gave, from a buffer of the same size."""
        self._slots[...] = EMPTY
        for name, array in self._arrays().items():
            array[state["slots"]] = state[name]

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "nids": self._slots.reshape(-1),
            "read_steps": self._read_steps,
            "max_ages": self._max_ages,
            "rates": self._rates,
            "update_counts": self._counts,
            "rows": self._rows,
        }


_jit = numba.njit(cache=True, nogil=True)


@_jit
def _pull(slots, read_steps, max_ages, rows, nids, positions, step, x, served, ages):
    dim = rows.shape[1]
    for i in range(len(nids)):
        look_ahead(slots, rows, nids, i)
        slot = find_slot(slots, nids[i])
        if slot < 0 or step - read_steps[slot] > max_ages[slot]:
            continue
        position = positions[i]
        source, target = rows[slot], x[position]
        for d in range(dim):
            target[d] = source[d]
        served[i] = True
        ages[i] = step - read_steps[slot]


@_jit
def _can_serve(slots, read_steps, max_ages, nids, step):
    found = np.zeros(len(nids), np.bool_)
    for i in range(len(nids)):
        slot = find_slot(slots, nids[i])
        found[i] = slot >= 0 and step - read_steps[slot] <= max_ages[slot]
    return found


@_jit
def _push(
    slots,
    read_steps,
    max_ages,
    rates,
    counts,
    rows,
    missed_updates,
    nids,
    positions,
    new_rows,
    new_counts,
    step,
    new_max_ages,
    new_rates,
):
    num_sets, ways = slots.shape
    flat = slots.reshape(-1)
    dim = rows.shape[1]
    for i in range(len(nids)):
        look_ahead(slots, rows, nids, i)
        if i + LOOKAHEAD < len(nids):
            prefetch_row(new_rows, positions[i + LOOKAHEAD])
        nid, position = nids[i], positions[i]
        slot = find_slot(slots, nid)
        if slot >= 0:
            missed = new_counts[position] - counts[slot]
            missed_updates[min(max(missed, 0), len(missed_updates) - 1)] += 1
        elif num_sets == 0 or new_max_ages[i] == 0:
            continue
        else:
            slot = find_empty(slots, nid)
            if slot < 0:
                first = (nid % num_sets) * ways
                least = new_rates[i] * new_max_ages[i]
                for other in range(first, first + ways):
                    left = max(0, read_steps[other] + max_ages[other] - step)
                    if rates[other] * left < least or left == 0:
                        slot, least = other, rates[other] * left
                if slot < 0:
                    continue
        flat[slot] = nid
        read_steps[slot] = step
        max_ages[slot] = new_max_ages[i]
        rates[slot] = new_rates[i]
        counts[slot] = new_counts[position]
        source, target = new_rows[position], rows[slot]
        for d in range(dim):
            target[d] = source[d]
