"""Row-wise Adagrad (PyTorch-BigGraph: Lerer et al., SysML 2019): Adagrad with one step for all numbers of a row.

    total ← total + mean(grad²)
    row ← row - lr / (√total + 1e-10) · grad

The mean runs over the row. The state is `total`, one number a row.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable
from torch import Tensor

from glpilot.app.embedding.rows.optimizers.rule import Rule, fused, look_ahead

EPS = 1e-10


@register_jitable(inline="always")
def _step_sizes(total, mean_square, lr):
    """For one row in the kernel, and for arrays of them where the table is split by dimension."""
    total = total + mean_square
    return total, np.float32(lr) / (np.sqrt(total) + np.float32(EPS))


@fused
def _kernel(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    for i in range(len(row_ids)):
        look_ahead(records, state, row_ids, positions, grads, i)
        row = row_ids[i]
        counts[row, dim] += 1
        weights, grad = records[row], grads[positions[i]]
        square = np.float32(0)
        for d in range(dim):
            square += grad[d] * grad[d]
        state[row, 0], step_size = _step_sizes(state[row, 0], square / np.float32(dim), lr)
        for d in range(dim):
            weights[d] -= grad[d] * step_size


def _torch_delta(total: Tensor, counts: Tensor, grads: Tensor, lr: float) -> Tensor:
    total += (grads * grads).mean(dim=1, keepdim=True)
    return grads * (lr / (total.sqrt() + EPS))


RULE = Rule(state_width=lambda dim: 1, kernel=_kernel, torch_delta=_torch_delta, step_sizes=_step_sizes)
