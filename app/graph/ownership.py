"""Which rank owns which nodes: a pure value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def rank_offsets(part_offsets: Sequence[int], num_ranks: int) -> np.ndarray:
    """The nid ranges of ranks that own consecutive parts, equally many each, int64 [num_ranks + 1]."""
    num_parts = len(part_offsets) - 1
    return np.asarray(part_offsets, np.int64)[:: num_parts // num_ranks]
