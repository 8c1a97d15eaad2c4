"""An access plan sorts a batch's nodes by their owners, and gives back where each stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.graph.ownership import rank_offsets


@st.composite
def batches(draw):
    """(distinct input nids in any order, offsets), with ranks that own nothing."""
    sizes = draw(st.lists(st.integers(0, 20), min_size=1, max_size=5))
    offsets = np.cumsum([0] + sizes)
    num_nodes = int(offsets[-1])
    nids = draw(st.lists(st.integers(0, num_nodes - 1), unique=True, max_size=num_nodes)) if num_nodes else []
    return np.array(nids, draw(st.sampled_from([np.int32, np.int64]))), offsets


@settings(deadline=None)
@given(batches())
def test_every_input_belongs_to_its_owner_once(batch):
    nids, offsets = batch
    plan = plan_access(nids, offsets)
    assert len(plan) == len(nids)
    seen = []
    for rank in range(len(offsets) - 1):
        owned = [nid for nid in sorted(nids.tolist()) if offsets[rank] <= nid < offsets[rank + 1]]
        assert plan.count(rank) == len(owned)
        assert nids[plan.positions_of(rank)].tolist() == owned
        assert plan.local_nids_of(rank).tolist() == [nid - offsets[rank] for nid in owned]
        assert plan.local_nids_of(rank).dtype == np.int32
        seen += plan.positions_of(rank).tolist()
    assert sorted(seen) == list(range(len(nids)))
    assert (np.diff(plan.nids) > 0).all()


def test_local_numbers_are_small_where_nids_are_not():
    offsets = [0, 2**33, 2**33 + 10]
    plan = plan_access(np.array([2**33 + 9, 5, 2**33]), offsets)
    assert plan.local_nids_of(0).tolist() == [5] and plan.local_nids_of(1).tolist() == [0, 9]
    assert plan.positions_of(1).tolist() == [2, 0]


@pytest.mark.parametrize(
    "part_offsets, num_ranks, expected",
    [
        ([0, 3, 5, 5, 9], 1, [0, 9]),
        ([0, 3, 5, 5, 9], 2, [0, 5, 9]),
        ([0, 3, 5, 5, 9], 4, [0, 3, 5, 5, 9]),
        ([0, 0, 0, 7], 3, [0, 0, 0, 7]),
        ([0, 1, 2, 3, 4, 5, 6], 3, [0, 2, 4, 6]),
    ],
)
def test_ranks_own_consecutive_parts(part_offsets, num_ranks, expected):
    offsets = rank_offsets(part_offsets, num_ranks)
    assert offsets.tolist() == expected and offsets.dtype == np.int64
