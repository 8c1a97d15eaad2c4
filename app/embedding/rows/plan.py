"""Where the rows of a batch live: a pure value, made once a step, used to fetch rows and to send gradients home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glpilot.app.embedding.rows.segment import Segment


@dataclass(frozen=True)
class AccessPlan:
    """Rows in ascending order of nid, which groups them by the rank that owns them.

    Attributes:
        positions: int64 [num_rows]: where the row of the i-th smallest nid stands in the batch.
        nids: [num_rows] ascending, distinct.
        bounds: int64 [num_ranks + 1]: rank r owns the sorted entries bounds[r] … bounds[r + 1] - 1.
        offsets: int64 [num_ranks + 1]: rank r owns the nids offsets[r] … offsets[r + 1] - 1.
    """

    positions: np.ndarray
    nids: np.ndarray
    bounds: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.nids)

    def count(self, rank: int) -> int:
        """How many of the rows a rank owns."""
        return int(self.bounds[rank + 1] - self.bounds[rank])

    def positions_of(self, rank: int) -> np.ndarray:
        """Positions in the batch of the rows that a rank owns, ascending by nid."""
        return self.positions[self.bounds[rank] : self.bounds[rank + 1]]

    def local_nids_of(self, rank: int) -> np.ndarray:
        """Row numbers at their owner of the rows that a rank owns, int32, ascending."""
        nids = self.nids[self.bounds[rank] : self.bounds[rank + 1]]
        return (nids - self.offsets[rank]).astype(np.int32)

    def segment_of(self, rank: int, grads: np.ndarray) -> Segment:
        """Gradients in batch order of the rows that a rank owns, with their row numbers there."""
        return Segment(self.local_nids_of(rank), self.positions_of(rank), grads)

    def nid_segment_of(self, rank: int, grads: np.ndarray) -> Segment:
        """The same with nids."""
        return Segment(self.nids[self.bounds[rank] : self.bounds[rank + 1]], self.positions_of(rank), grads)

    def owned_by(self, ranks: np.ndarray) -> np.ndarray:
        """Which entries belong to the ranks that a bool [num_ranks] marks, bool [num_rows]."""
        return np.repeat(ranks, np.diff(self.bounds))

    def select(self, chosen: np.ndarray) -> AccessPlan:
        """The plan of those entries that a bool [num_rows] marks."""
        if chosen.all():
            return self
        bounds = np.concatenate([[0], np.cumsum(chosen)])[self.bounds]
        return AccessPlan(self.positions[chosen], self.nids[chosen], bounds, self.offsets)

    def packed(self) -> AccessPlan:
        """The same rows, lying one after the other in the order of their nids."""
        return AccessPlan(np.arange(len(self)), self.nids, self.bounds, self.offsets)


def plan_access(nids: np.ndarray, offsets: Sequence[int] | np.ndarray) -> AccessPlan:
    """Sort distinct nids and cut them at the ranks' ranges `offsets` [num_ranks + 1]."""
    ranges = np.asarray(offsets, np.int64)
    positions = np.argsort(nids)
    nids = nids[positions]
    return AccessPlan(positions, nids, np.searchsorted(nids, ranges), ranges)
