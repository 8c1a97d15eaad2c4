"""SGD, stochastic gradient descent (Robbins and Monro, Annals of Mathematical Statistics 1951).

    row ← row - lr · grad

It has no state.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from glpilot.app.embedding.rows.optimizers.rule import Rule, fused, look_ahead


@fused
def _kernel(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    lr = np.float32(lr)
    for i in range(len(row_ids)):
        look_ahead(records, state, row_ids, positions, grads, i)
        row = row_ids[i]
        counts[row, dim] += 1
        weights, grad = records[row], grads[positions[i]]
        for d in range(dim):
            weights[d] -= grad[d] * lr


def _torch_delta(state: Tensor, counts: Tensor, grads: Tensor, lr: float) -> Tensor:
    return grads * lr


RULE = Rule(state_width=lambda dim: 0, kernel=_kernel, torch_delta=_torch_delta)
