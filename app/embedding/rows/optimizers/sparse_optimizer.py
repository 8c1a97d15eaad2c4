"""Optimizers of embedding rows by name. One call updates distinct rows once, in place, and counts the update.

On the CPU a rule's fused kernel does it; on other devices the same formulas run as torch ops. A new optimizer is a file
with a rule beside this one, a line in the table, and a choice of the config key `embedding.optimizer`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.rows.optimizers import adagrad, adam, rowwise_adagrad, sgd
from glpilot.app.embedding.rows.segment import DeviceSegment, Segment

RULES = {
    "sgd": sgd.RULE,
    "adagrad": adagrad.RULE,
    "rowwise_adagrad": rowwise_adagrad.RULE,
    "adam": adam.RULE,
}


class SparseOptimizer:
    """An optimizer of embedding rows by its name in the table."""

    def __init__(self, name: str, dim: int):
        self.name = name
        self.state_width = RULES[name].state_width(dim)

    def allocate_state(self, num_rows: int) -> np.ndarray:
        """State of rows that were never updated, float32 [num_rows, state_width]."""
        return np.zeros((num_rows, self.state_width), np.float32)

    def step(self, records: Tensor, state: Tensor, segment: Segment | DeviceSegment, lr: float) -> None:
        """Update rows in place.

        Args:
            records: float32 [num_rows, dim + 1], see records.py.
            state: float32 [num_rows, state_width].
            segment: of distinct rows, with the gradients summed over everything that touched a row; where the records
                are.
        """
        if isinstance(segment, DeviceSegment):
            grads = segment.values[segment.positions.long()]
            step_with_torch(self.name, records, state, segment.row_ids, grads, lr)
            return
        row_ids, positions, values = segment
        assert isinstance(values, np.ndarray)
        RULES[self.name].kernel(records.numpy(), state.numpy(), row_ids, positions, values, lr)


def step_with_torch(name: str, records: Tensor, state: Tensor, row_ids: Tensor, grads: Tensor, lr: float) -> None:
    """The same update as the kernels', as torch ops for any device: distinct int32 row_ids [n], grads [n, dim]."""
    ids = row_ids.long()
    dim = grads.shape[1]
    all_counts = records.view(torch.int32)[:, dim]
    counts = all_counts[ids] + 1
    all_counts[ids] = counts
    new_state = state[ids]
    delta = RULES[name].torch_delta(new_state, counts, grads, lr)
    state[ids] = new_state
    records[ids, :dim] -= delta
