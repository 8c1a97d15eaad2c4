"""Adagrad (Duchi, Hazan and Singer, JMLR 2011): each number of a row has its own step, by its gradients so far.

    total ← total + grad²
    row ← row - lr · grad / (√total + 1e-10)

The state is `total`, as wide as the row.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from glpilot.app.embedding.rows.optimizers.rule import Rule, fused, look_ahead

EPS = 1e-10


@fused
def _kernel(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    lr, eps = np.float32(lr), np.float32(EPS)
    for i in range(len(row_ids)):
        look_ahead(records, state, row_ids, positions, grads, i)
        row = row_ids[i]
        counts[row, dim] += 1
        weights, total, grad = records[row], state[row], grads[positions[i]]
        for d in range(dim):
            total[d] += grad[d] * grad[d]
        for d in range(dim):
            weights[d] -= grad[d] * lr / (np.sqrt(total[d]) + eps)


def _torch_delta(total: Tensor, counts: Tensor, grads: Tensor, lr: float) -> Tensor:
    total += grads * grads
    return grads * lr / (total.sqrt() + EPS)


RULE = Rule(state_width=lambda dim: dim, kernel=_kernel, torch_delta=_torch_delta)
