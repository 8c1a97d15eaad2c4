"""How many rows a step has read, by where they came from, and the bytes that crossed hosts for them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from glpilot.app.embedding.copies.reader import Reading
from glpilot.app.embedding.rows.plan import AccessPlan
from glpilot.app.embedding.rows.store import EmbeddingStore
from glpilot.app.runtime.communicator import Communicator


def count_rows(
    counters: Counter[str],
    communicator: Communicator,
    plan: AccessPlan,
    reading: Reading | None,
    embeddings: EmbeddingStore | None,
    features: EmbeddingStore | None,
) -> None:
    """Add a step to the counters. The kinds of rows add up to "input_rows".

    Args:
        plan: of the whole batch. reading: of its embedding rows; None as `embeddings` is.
    """
    num_owned, num_near, num_far = _by_distance(communicator, plan)
    counts = dict(owned_rows=num_owned, near_rows=num_near, fetched_rows=num_far)
    fetch_bytes = num_far * features.record_bytes if features is not None else 0
    if reading is not None and embeddings is not None:
        num_owned, num_near, num_far = _by_distance(communicator, reading.cold)
        num_fetched = num_far - reading.num_buffered
        counts = dict(
            hot_rows=len(reading.hot_slots),
            owned_rows=num_owned,
            near_rows=num_near,
            buffered_rows=reading.num_buffered,
            fetched_rows=num_fetched,
        )
        fetch_bytes += num_fetched * embeddings.record_bytes
    counters.update(steps=1, input_rows=len(plan), fetch_bytes=fetch_bytes, **counts)


def _by_distance(communicator: Communicator, plan: AccessPlan) -> tuple[int, int, int]:
    """Rows of this rank, of others on its host, and of other hosts."""
    num_owned = plan.count(communicator.rank)
    num_here = int(np.diff(plan.bounds)[communicator.is_near].sum())
    return num_owned, num_here - num_owned, len(plan) - num_here
