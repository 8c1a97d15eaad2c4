"""The device cache (GLPilot): the hottest rows with their optimizer state, a replica on every rank's device.

Every rank applies the same summed gradients in the same order, so the replicas stay equal bit for bit and hot rows
cross neither the network nor PCIe as fetches. While a row is here its owner's shard is out of date: `owned` gives
back what belongs there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.gradients.aggregate import Aggregator, sum_on_device
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import SparseOptimizer
from glpilot.app.embedding.rows.segment import DeviceSegment, Segment


class DeviceCache:
    """Replicas of the hot rows. Knows nothing of ranks.

    Attributes:
        nids: int64 [num_hot], ascending: the rows in slots 0, 1, …
        records: float32 [num_hot, dim + 1] on the device, see records.py.
        state: float32 [num_hot, width] on the device: the sparse optimizer's.
    """

    def __init__(self, num_nodes: int, dim: int, optimizer: SparseOptimizer, device: torch.device):
        self._dim = dim
        self._optimizer = optimizer
        self._device = device
        self._slot_of_nid = np.full(num_nodes, -1, np.int32)
        self.nids = np.empty(0, np.int64)
        self.load(self.nids, np.empty((0, dim + 1), np.float32), np.empty((0, optimizer.state_width), np.float32))

    def __len__(self) -> int:
        return len(self.nids)

    def load(self, nids: np.ndarray, records: np.ndarray, state: np.ndarray) -> None:
        """Hold these rows instead: nids int64 [n] ascending, records and state as their owners have them."""
        self._slot_of_nid[self.nids] = -1
        self._slot_of_nid[nids] = np.arange(len(nids), dtype=np.int32)
        self.nids = nids
        self.records = torch.from_numpy(records).to(self._device)
        self.state = torch.from_numpy(state).to(self._device)
        self._aggregator = Aggregator(len(nids), self._dim)

    def slots_of(self, nids: np.ndarray) -> np.ndarray:
        """The slot of each row, int32 [n]; -1 for one that is not here."""
        return self._slot_of_nid[nids]

    def rows(self, slots: Tensor) -> Tensor:
        """Rows by slot: float32 [n, dim] from integers [n] on the device."""
        return self.records[slots.long(), : self._dim]

    def update(self, segments: Sequence[Segment], lr: float) -> None:
        """Sum gradients (row ids are slots), in the order of the segments, and update the rows that have any, once.

        A segment's row ids are distinct; the values of the first may be changed.
        """
        for segment in self._sum(segments):
            self._optimizer.step(self.records, self.state, segment, lr)

    def owned(self, start_nid: int, stop_nid: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The hot rows of an owner: their nids, records and state, as `load` took them."""
        first, last = np.searchsorted(self.nids, [start_nid, stop_nid])
        return self.nids[first:last], self.records[first:last].cpu().numpy(), self.state[first:last].cpu().numpy()

    def _sum(self, segments: Sequence[Segment]) -> Sequence[Segment | DeviceSegment]:
        if not segments:
            return []
        if self._device.type == "cpu":
            return self._aggregator.sum(segments[0], segments[1:])
        return [sum_on_device(segments, self._device)]
