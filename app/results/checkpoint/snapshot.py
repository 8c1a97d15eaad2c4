"""What a checkpoint holds of one rank: values that training gives and takes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

Waiting = dict[str, dict[str, np.ndarray]]  # arrays by name, by what waits: "buffer", "window", "prefetched", "counted"


@dataclass(frozen=True)
class RowsSnapshot:
    """The rows of a rank.

    Attributes:
        records: float32 [num_rows, dim + 1], see embedding/rows/records.py.
        state: float32 [num_rows, width that depends on the optimizer].
        lr: learning rate of the last step.
        techniques: hex digest of what decides where copies and gradients wait.
        waiting: copies of other ranks' rows, gradients and whatever else waits between two steps.
    """

    records: np.ndarray
    state: np.ndarray
    lr: float
    techniques: str
    waiting: Waiting


@dataclass(frozen=True)
class Snapshot:
    """
    Attributes:
        weights: the model's tensors by name.
        optimizer: the dense optimizer's tensors by name, by the number of their parameter.
        rows: None where the model reads features alone.
    """

    weights: dict[str, Tensor]
    optimizer: dict[int, dict[str, Any]]
    rows: RowsSnapshot | None
