"""Gradients of whole numbers, whose sums are exact in any order."""

from __future__ import annotations

import numpy as np

EMPTINESS = ["none", "some ranks send nothing", "all send nothing"]


def draw(communicator, num_rows, dim, emptiness):
    """What all ranks send: distinct rows of each, and their gradients in the same order."""
    sent = []
    for sender in range(communicator.size):
        rng = np.random.default_rng(sender)
        is_empty = emptiness == "all send nothing" or (emptiness != "none" and sender % 2 == 0)
        rows = rng.permutation(num_rows)[: 0 if is_empty else rng.integers(1, num_rows)]
        sent.append((rows, rng.integers(-99, 99, (len(rows), dim)).astype(np.float32)))
    return sent


def sum_of(sent, num_rows, dim):
    total = np.zeros((num_rows, dim), np.float32)
    for rows, grads in sent:
        total[rows] += grads
    return total, np.unique(np.concatenate([rows for rows, _ in sent]))


def add_up(aggregator, segments, dim):
    """Row ids and sums of all segments, as arrays."""
    if not segments:
        return np.empty(0, np.int32), np.empty((0, dim), np.float32)
    summed = aggregator.sum(segments[0], segments[1:])
    return (
        np.concatenate([part.row_ids for part in summed]),
        np.concatenate([part.values[part.positions, :dim] for part in summed]),
    )
