"""Hotness: how often each row is read by a rank, and updated by anyone. Pure numbers; nothing here communicates.

Rates come from counts of sampled steps (pre-sampling), or from the graph's structure alone (the vertex-inclusion
probability of SALIENT++, Kaler et al., MLSys 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np


@dataclass(frozen=True)
class Hotness:
    """
    Attributes:
        access_rates: float32 [num_nodes]: how often a step of this rank reads the row, 0 to 1.
        update_rates: float32 [num_nodes]: how often a step updates the row, 0 to 1: if any rank read it.
    """

    access_rates: np.ndarray
    update_rates: np.ndarray


class AccessCounter:
    """Counts in how many steps each row was read.

    Attributes:
        counts: int32 [num_nodes].
        num_steps: steps counted.
    """

    def __init__(self, num_nodes: int):
        self.counts = np.zeros(num_nodes, np.int32)
        self.num_steps = 0

    def add(self, input_nids: np.ndarray) -> None:
        """Count a step that read these distinct nids."""
        self.counts[input_nids] += 1
        self.num_steps += 1

    def rates(self) -> np.ndarray:
        """Accesses per step, float32 [num_nodes]. Half an access is added to every row: one that was never seen may
        be seen yet, and is expected less often than once in the steps counted."""
        return (self.counts + np.float32(0.5)) / np.float32(self.num_steps + 1)

    def clear(self) -> None:
        self.counts[...] = 0
        self.num_steps = 0

    def state(self) -> dict[str, np.ndarray]:
        """All of it as arrays, for a checkpoint."""
        return {"counts": self.counts, "num_steps": np.array([self.num_steps])}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Take over what `state` gave."""
        self.counts[...] = state["counts"]
        self.num_steps = int(state["num_steps"][0])


def inclusion_probabilities(
    indptr: np.ndarray, indices: np.ndarray, seed_probabilities: np.ndarray, fanouts: Sequence[int]
) -> np.ndarray:
    """The probability that a step's neighbourhoods hold a node, if all choices were independent.

    A node is included at hop h if at least one out-neighbour included at hop h - 1 chose it.

    Args:
        indptr, indices: in-edges in compressed sparse column form.
        seed_probabilities: float32 [num_nodes]: that a node is a seed of the step.
        fanouts: neighbours per node by layer, input layer first; -1 takes all.

    Returns:
        float32 [num_nodes].
    """
    at_hop = seed_probabilities.astype(np.float32)
    log_absent = np.log1p(-np.minimum(at_hop, _ALMOST_ONE))
    for fanout in reversed(fanouts):
        log_not_chosen = np.zeros(len(at_hop), np.float32)
        _spread(indptr, indices, at_hop, fanout, log_not_chosen)
        at_hop = -np.expm1(log_not_chosen)
        log_absent += log_not_chosen
    return -np.expm1(log_absent)


def log_absences(rates: np.ndarray) -> np.ndarray:
    """log(1 - rate), float32; summed over ranks it is the logarithm of how often a row is read by none."""
    return np.log1p(-np.minimum(rates, _ALMOST_ONE))


def hottest(update_rates: np.ndarray, num_rows: int) -> np.ndarray:
    """The nids of the `num_rows` most often updated rows, int64, ascending; equal rates go by nid."""
    if num_rows <= 0:
        return np.empty(0, np.int64)
    order = np.argsort(-update_rates, kind="stable")
    return np.sort(order[:num_rows])


def share_curve(amounts: np.ndarray, rates: np.ndarray, num_points: int = 101) -> np.ndarray:
    """What share of all amounts the most frequent rows have.

    Args:
        amounts: [num_nodes], such as accesses. rates: [num_nodes], by which rows are ordered, the highest first.

    Returns:
        float64 [num_points]: the shares of the first 0 … 100% of the rows, evenly spaced; zeros if there is nothing.
    """
    total = np.concatenate([[0.0], np.cumsum(amounts[np.argsort(-rates, kind="stable")], dtype=np.float64)])
    at = np.round(np.linspace(0, len(amounts), num_points)).astype(int)
    return total[at] / (total[-1] or 1.0)


_ALMOST_ONE = np.float32(1 - 1e-6)


@numba.njit(cache=True, nogil=True)
def _spread(indptr, indices, at_hop, fanout, log_not_chosen):
    for node in range(len(at_hop)):
        if at_hop[node] == 0:
            continue
        first, last = indptr[node], indptr[node + 1]
        chosen = 1.0 if fanout < 0 or last - first <= fanout else fanout / (last - first)
        amount = np.float32(np.log1p(-min(at_hop[node] * chosen, 1 - 1e-6)))
        for edge in range(first, last):
            log_not_chosen[indices[edge]] += amount
