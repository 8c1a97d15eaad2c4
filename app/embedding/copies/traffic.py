"""The traffic model: rows and bytes that a step is expected to move, from the hotness of rows and the settings.

Pure formulas over rates per step, summed over rows. A far row is one of another host. For a far row that this rank
reads at rate a and anyone updates at rate u:

- with a bound of B steps (B from `staleness.max_ages(u)`), one fetch serves the accesses of the next B steps, so it is
  fetched at the rate a / (1 + a B);
- with a window of W steps, the last of which is for sending, its gradient is sent alone or with that of the next access
  within W - 2 steps, so it is sent at the rate a / (1 + q), q = 1 - (1 - a)^(W - 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glpilot.app.embedding.copies.hotness import Hotness
from glpilot.app.embedding.copies.staleness import max_ages

ID_BYTES = 8  # of a row's number in Horovod's sparse allreduce


@dataclass(frozen=True)
class Layout:
    """How ranks lie on hosts, as far as traffic depends on it.

    Attributes:
        num_senders: ranks among which hot rows are summed across hosts: one a host where the ranks of a host sum first.
        record_bytes: bytes of a row with its update count.
    """

    num_senders: int
    record_bytes: int


def fetch_rates(access_rates: np.ndarray, ages: np.ndarray) -> np.ndarray:
    """How often a step fetches each far row, float64 [n], if every copy finds room in the buffer."""
    return access_rates / (1 + access_rates.astype(np.float64) * ages)


def send_rates(access_rates: np.ndarray, window_steps: int) -> np.ndarray:
    """How often a step sends each far row's gradient, float64 [n]."""
    again = 1 - (1 - np.minimum(access_rates, 1).astype(np.float64)) ** max(window_steps - 2, 0)
    return access_rates / (1 + again)


def hot_sync_bytes(kind: str, layout: Layout, num_hot: int, num_touched: float) -> float:
    """Bytes that one sender moves per step for the gradients of hot rows.

    Args:
        num_touched: of its hot rows, those that its step touches.
    """
    if kind == "sparse_allreduce":
        return num_touched * (layout.record_bytes - 4 + ID_BYTES) * (layout.num_senders - 1)
    return num_hot * layout.record_bytes * 2 * (layout.num_senders - 1) / layout.num_senders


def cold_sync_bytes(kind: str, layout: Layout, num_sent: float) -> float:
    """Bytes that one rank moves per step for the gradients of `num_sent` rows of other hosts."""
    if kind == "sparse_allreduce":
        return num_sent * (layout.record_bytes - 4 + ID_BYTES) * (layout.num_senders - 1)
    return num_sent * layout.record_bytes


def choose_hot_sync(layout: Layout, num_hot: int, num_touched: float) -> str:
    """The kind that moves fewer bytes."""
    return min(
        ("sparse_allreduce", "dense_allreduce"), key=lambda kind: hot_sync_bytes(kind, layout, num_hot, num_touched)
    )


def cold_bytes(
    hotness: Hotness, is_far: np.ndarray, layout: Layout, max_steps: int, max_missed_updates: int, window_steps: int
) -> np.ndarray:
    """Bytes that each row costs this rank per step while it is cold, fetched and sent: float64 [num_nodes]."""
    ages = max_ages(hotness.update_rates, max_steps, max_missed_updates)
    rates = fetch_rates(hotness.access_rates, ages) + send_rates(hotness.access_rates, window_steps)
    return np.where(is_far, rates * layout.record_bytes, 0.0)


def choose_num_hot(
    saved_bytes: np.ndarray, touch_rates: np.ndarray, update_rates: np.ndarray, layout: Layout, limit: int
) -> int:
    """How many of the hottest rows to replicate, so that a step moves the fewest bytes.

    Args:
        saved_bytes: float64 [num_nodes]: what a row costs all ranks per step while it is cold.
        touch_rates: float64 [num_nodes]: accesses of a row per step, over all senders.
        update_rates: float32 [num_nodes]: rows become hot in descending order of these.
        limit: rows that fit on a device.
    """
    order = np.argsort(-update_rates, kind="stable")[:limit]
    saved = np.concatenate([[0.0], np.cumsum(saved_bytes[order])])
    touched = np.concatenate([[0.0], np.cumsum(touch_rates[order])])
    num_hot = np.arange(len(order) + 1)
    sparse = touched * (layout.record_bytes - 4 + ID_BYTES) * (layout.num_senders - 1)
    dense = num_hot * layout.record_bytes * 2.0 * (layout.num_senders - 1)
    return int(np.argmax(saved - np.minimum(sparse, dense)))
