"""Gradients of rows, wherever they lie: what travels between the model, the sums and the optimizers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor


class Segment(NamedTuple):
    """Row gradients: values[positions[i], :dim] belongs to row row_ids[i].

    Attributes:
        row_ids: integers [num_entries]: numbers of rows at their owner, slots of the device cache, or nids.
        positions: integers [num_entries].
        values: float32 [any, dim or more]; columns beyond `dim` are ignored. A tensor where they lie on a GPU.
    """

    row_ids: np.ndarray
    positions: np.ndarray
    values: np.ndarray | Tensor

    def select(self, chosen: np.ndarray) -> Segment:
        """The entries that a bool [num_entries] marks."""
        return Segment(self.row_ids[chosen], self.positions[chosen], self.values)


class DeviceSegment(NamedTuple):
    """The same where all of it lies on a device: tensors, of distinct rows."""

    row_ids: Tensor
    positions: Tensor
    values: Tensor
