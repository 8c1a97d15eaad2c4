"""Adam (Kingma and Ba, ICLR 2015) on the rows that have a gradient.

    mean ← 0.9 · mean + 0.1 · grad
    square ← 0.999 · square + 0.001 · grad²
    row ← row - lr · mean / (1 - 0.9^count) / (√(square / (1 - 0.999^count)) + 1e-8)

The bias is corrected by `count`, the row's own number of updates, as DGL's SparseAdam does. The state is `mean` and
then `square`, each as wide as the row.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from glpilot.app.embedding.rows.optimizers.rule import Rule, fused, look_ahead

BETA1, BETA2 = 0.9, 0.999
EPS = 1e-8


@fused
def _kernel(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    beta1, beta2 = np.float32(BETA1), np.float32(BETA2)
    rest1, rest2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    eps = np.float32(EPS)
    for i in range(len(row_ids)):
        look_ahead(records, state, row_ids, positions, grads, i)
        row = row_ids[i]
        count = counts[row, dim] + 1
        counts[row, dim] = count
        step_size = np.float32(lr / (1 - BETA1**count))
        scale = np.float32(1 / math.sqrt(1 - BETA2**count))
        weights, grad = records[row], grads[positions[i]]
        mean, square = state[row, :dim], state[row, dim:]
        for d in range(dim):
            mean[d] = mean[d] * beta1 + grad[d] * rest1
        for d in range(dim):
            square[d] = square[d] * beta2 + grad[d] * grad[d] * rest2
        for d in range(dim):
            weights[d] -= mean[d] * step_size / (np.sqrt(square[d]) * scale + eps)


def _torch_delta(state: Tensor, counts: Tensor, grads: Tensor, lr: float) -> Tensor:
    dim = grads.shape[1]
    mean, square = state[:, :dim], state[:, dim:]
    count = counts.double().unsqueeze(1)
    step_size = (lr / (1 - BETA1**count)).float()
    scale = (1 / (1 - BETA2**count).sqrt()).float()
    mean[...] = mean * BETA1 + grads * (1 - BETA1)
    square[...] = square * BETA2 + grads * grads * (1 - BETA2)
    return mean * step_size / (square.sqrt() * scale + EPS)


RULE = Rule(state_width=lambda dim: 2 * dim, kernel=_kernel, torch_delta=_torch_delta)
