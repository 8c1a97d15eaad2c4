"""Where rows lie in a bounded table: each nid may lie in one set of eight slots, as in a processor's cache.

A look-up then reads one cache line, the table never grows, and room is made by a choice among eight.
"""

from __future__ import annotations

import numba
import numpy as np

from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row

WAYS = 8
EMPTY = -1


def allocate_slots(num_slots: int) -> np.ndarray:
    """The nid in each slot, none at first: int64 [num_sets, slots per set], at most `num_slots` in all."""
    ways = min(WAYS, num_slots)
    num_sets = num_slots // ways if ways else 0
    return np.full((num_sets, ways), EMPTY, np.int64)


@numba.njit(cache=True, nogil=True, inline="always")
def find_slot(slots, nid):
    """The slot that holds a nid, or -1."""
    num_sets, ways = slots.shape
    if num_sets == 0:
        return -1
    first = nid % num_sets  # neighbouring nids, which METIS made a cluster of, fall into different sets
    for way in range(ways):
        if slots[first, way] == nid:
            return first * ways + way
    return -1


@numba.njit(cache=True, nogil=True, inline="always")
def find_empty(slots, nid):
    """An empty slot that a nid may take, or -1."""
    num_sets, ways = slots.shape
    if num_sets == 0:
        return -1
    first = nid % num_sets
    for way in range(ways):
        if slots[first, way] == EMPTY:
            return first * ways + way
    return -1


@numba.njit(cache=True, nogil=True, inline="always")
def look_ahead(slots, rows, nids, i):
    """Load what a loop over `nids` needs after the i-th: the set of a nid, later the row in its slot, if any."""
    num_sets = slots.shape[0]
    if i + 2 * LOOKAHEAD < len(nids) and num_sets > 0:
        prefetch_row(slots, nids[i + 2 * LOOKAHEAD] % num_sets)
    if i + LOOKAHEAD < len(nids):
        slot = find_slot(slots, nids[i + LOOKAHEAD])
        if slot >= 0:
            prefetch_row(rows, slot)
