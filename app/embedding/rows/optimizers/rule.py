"""What an optimizer's file gives: the width of its state, a fused kernel for the CPU, and the same rule as torch ops.

A rule sees distinct rows, each once, with the gradients summed over everything that touched the row. Its state lies in
one array beside the rows, one line a row, all zero before a row's first update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numba
import numpy as np
from torch import Tensor

from glpilot.app.embedding.rows.cpu_prefetch import LOOKAHEAD, prefetch_row

StepSizes = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Rule:
    """How an optimizer updates rows.

    Attributes:
        state_width: columns of state per row, from the row's width.
        kernel: (records, state, row_ids, positions, grads, lr), all arrays but lr: update the rows of float32 records
            [num_rows, dim + 1], see records.py, and of float32 state [num_rows, state_width] in place. Row row_ids[i]
            has the gradient grads[positions[i], :dim], and one more update in its count.
        torch_delta: (state, counts, grads, lr), all tensors but lr: from copies of the rows' float32 state [n,
            state_width], changed in place, their int32 counts [n] with this update, and their float32 grads [n, dim],
            what to subtract from the rows, float32 [n, dim].
        step_sizes: only where the state is one number a row that runs over all its columns, so that a rank with some of
            the columns cannot update them by the kernel. (totals, mean_squares, lr): from the rows' state float32 [n]
            and the means of their squared gradients float32 [n], the new state and what gradients are multiplied by.
    """

    state_width: Callable[[int], int]
    kernel: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float], None]
    torch_delta: Callable[[Tensor, Tensor, Tensor, float], Tensor]
    step_sizes: StepSizes | None = None


# Compiles a kernel. Loops over the one-dimensional views of a row, each writing one of them, are what LLVM turns into
# vector code.
fused = numba.njit(cache=True, nogil=True, error_model="numpy")


@numba.njit(inline="always")
def look_ahead(records, state, row_ids, positions, grads, i):
    """Load what a kernel will need some rows after the i-th."""
    # min, not a branch, at which Numba would count references to the arrays: up to twice the time of a kernel
    ahead = min(i + LOOKAHEAD, len(row_ids) - 1)
    prefetch_row(records, row_ids[ahead])
    prefetch_row(state, row_ids[ahead])
    prefetch_row(grads, positions[ahead])
