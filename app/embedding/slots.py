"""Where rows lie in a bounded table: each nid may lie in one set of eight slots, as in a processor's cache.

A look-up then reads one cache line, the table never grows, and room is made by a choice among eight.
"""
from __future__ import annotations

import numba
import numpy as np

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
