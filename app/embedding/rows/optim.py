"""Sparse optimizers: SGD, Adagrad, row-wise Adagrad and Adam on the rows that have a gradient.

One call updates distinct rows once, in place, and counts the update in the record. On the CPU a fused kernel does
it; on other devices the same formulas run as torch ops. State lies in one array beside the rows, one line a row.
Adam corrects its bias by the row's own count, as DGL's SparseAdam does.
"""
from __future__ import annotations

import math

import numba
import numpy as np
import torch
from torch import Tensor

from glpilot.app.embedding.rows.segment import Segment
from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row

BETA1, BETA2 = 0.9, 0.999
ADAM_EPS = 1e-8
ADAGRAD_EPS = 1e-10

# Columns of state per row: a function of the row's width.
_STATE_WIDTH = {"sgd": lambda dim: 0, "adagrad": lambda dim: dim, "rowwise_adagrad": lambda dim: 1, "adam": lambda dim: 2 * dim}


class SparseOptimizer:
    """An optimizer of embedding rows by name: sgd, adagrad, rowwise_adagrad, adam."""

    def __init__(self, name: str, dim: int):
        self.name = name
        self.state_width = _STATE_WIDTH[name](dim)

    def allocate_state(self, num_rows: int) -> np.ndarray:
        """State of rows that were never updated, float32 [num_rows, state_width]."""
        return np.zeros((num_rows, self.state_width), np.float32)

    def step(self, records: Tensor, state: Tensor, segment: Segment, lr: float) -> None:
        """Update rows in place.

        Args:
            records: float32 [num_rows, dim + 1], see records.py.
            state: float32 [num_rows, state_width].
            segment: of distinct rows, with the gradients summed over everything that touched a row; arrays where the
                records are on the CPU, tensors on their device otherwise.
        """
        if records.device.type == "cpu":
            _KERNELS[self.name](records.numpy(), state.numpy(), *segment, lr)
        else:
            row_ids, positions, values = segment
            step_with_torch(self.name, records, state, row_ids, values[positions.long()], lr)


def step_with_torch(name: str, records: Tensor, state: Tensor, row_ids: Tensor, grads: Tensor, lr: float) -> None:
    """The same update as the kernels', as torch ops for any device: distinct int32 row_ids [n], grads [n, dim]."""
    ids = row_ids.long()
    dim = grads.shape[1]
    counts = records.view(torch.int32)[:, dim]
    counts[ids] += 1
    if name == "sgd":
        delta = grads * lr
    elif name == "adagrad":
        total = state[ids] + grads * grads
        state[ids] = total
        delta = grads * lr / (total.sqrt() + ADAGRAD_EPS)
    elif name == "rowwise_adagrad":
        total = state[ids] + (grads * grads).mean(dim=1, keepdim=True)
        state[ids] = total
        delta = grads * (lr / (total.sqrt() + ADAGRAD_EPS))
    else:
        count = counts[ids].double().unsqueeze(1)
        step_size = (lr / (1 - BETA1**count)).float()
        scale = (1 / (1 - BETA2**count).sqrt()).float()
        mean = state[ids, :dim] * BETA1 + grads * (1 - BETA1)
        square = state[ids, dim:] * BETA2 + grads * grads * (1 - BETA2)
        state[ids] = torch.cat([mean, square], dim=1)
        delta = mean * step_size / (square.sqrt() * scale + ADAM_EPS)
    records[ids, :dim] = records[ids, :dim] - delta


_jit = numba.njit(cache=True, nogil=True, error_model="numpy")

# Loops over the one-dimensional views of a row, each writing one of them, are what LLVM turns into vector code.


@_jit
def _sgd(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    lr = np.float32(lr)
    for i in range(len(row_ids)):
        if i + LOOKAHEAD < len(row_ids):
            prefetch_row(records, row_ids[i + LOOKAHEAD])
            prefetch_row(state, row_ids[i + LOOKAHEAD])
            prefetch_row(grads, positions[i + LOOKAHEAD])
        row = row_ids[i]
        counts[row, dim] += 1
        weights, grad = records[row], grads[positions[i]]
        for d in range(dim):
            weights[d] -= grad[d] * lr


@_jit
def _adagrad(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    lr, eps = np.float32(lr), np.float32(ADAGRAD_EPS)
    for i in range(len(row_ids)):
        if i + LOOKAHEAD < len(row_ids):
            prefetch_row(records, row_ids[i + LOOKAHEAD])
            prefetch_row(state, row_ids[i + LOOKAHEAD])
            prefetch_row(grads, positions[i + LOOKAHEAD])
        row = row_ids[i]
        counts[row, dim] += 1
        weights, total, grad = records[row], state[row], grads[positions[i]]
        for d in range(dim):
            total[d] += grad[d] * grad[d]
        for d in range(dim):
            weights[d] -= grad[d] * lr / (np.sqrt(total[d]) + eps)


@_jit
def _rowwise_adagrad(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    for i in range(len(row_ids)):
        if i + LOOKAHEAD < len(row_ids):
            prefetch_row(records, row_ids[i + LOOKAHEAD])
            prefetch_row(state, row_ids[i + LOOKAHEAD])
            prefetch_row(grads, positions[i + LOOKAHEAD])
        row = row_ids[i]
        counts[row, dim] += 1
        weights, grad = records[row], grads[positions[i]]
        square = np.float32(0)
        for d in range(dim):
            square += grad[d] * grad[d]
        total = state[row, 0] + square / np.float32(dim)
        state[row, 0] = total
        step_size = np.float32(lr) / (np.sqrt(total) + np.float32(ADAGRAD_EPS))
        for d in range(dim):
            weights[d] -= grad[d] * step_size


@_jit
def _adam(records, state, row_ids, positions, grads, lr):
    dim = records.shape[1] - 1
    counts = records.view(np.int32)
    beta1, beta2 = np.float32(BETA1), np.float32(BETA2)
    rest1, rest2 = np.float32(1 - BETA1), np.float32(1 - BETA2)
    eps = np.float32(ADAM_EPS)
    for i in range(len(row_ids)):
        if i + LOOKAHEAD < len(row_ids):
            prefetch_row(records, row_ids[i + LOOKAHEAD])
            prefetch_row(state, row_ids[i + LOOKAHEAD])
            prefetch_row(grads, positions[i + LOOKAHEAD])
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


_KERNELS = {"sgd": _sgd, "adagrad": _adagrad, "rowwise_adagrad": _rowwise_adagrad, "adam": _adam}
