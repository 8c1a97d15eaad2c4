"""Rows and their update counts come to any rank as their owner wrote them, by either way of fetching."""

from __future__ import annotations

import numpy as np
import pytest

from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.embedding.rows.records import counts_of, rows_of
from glpilot.app.embedding.rows.store import EmbeddingStore
from glpilot.app.runtime.agreement import AgreedError, agreement
from glpilot.data.errors import UserError

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]


def expected_rows(nids, dim, version=0):
    """What the owner of a row writes: every value tells its row, its column and the version."""
    return (np.asarray(nids)[:, None] * 1000 + np.arange(dim) + version / 4).astype(np.float32)


def write_own(store, rank, version=0):
    nids = np.arange(store.offsets[rank], store.offsets[rank + 1])
    rows_of(store.records)[...] = expected_rows(nids, store.dim, version)
    counts_of(store.records)[...] = nids + version
    store.start_publishing()
    store.finish_publishing()


def make_offsets(sizes, num_ranks):
    return np.concatenate([[0], np.cumsum([sizes[rank % len(sizes)] for rank in range(num_ranks)])])


@pytest.mark.parametrize("fetch", ["rma", "alltoall"])
@pytest.mark.parametrize("dim", [1, 3, 64])
@pytest.mark.parametrize("sizes", [(50,), (0, 40), (40, 0, 0), (1, 200)])
def test_random_fetches(communicator, fetch, dim, sizes):
    offsets = make_offsets(sizes, communicator.size)
    store = EmbeddingStore(communicator, offsets, dim, fetch)
    for version in range(3):
        write_own(store, communicator.rank, version)
        rng = np.random.default_rng((communicator.rank, version))
        nids = rng.permutation(offsets[-1])[: rng.integers(0, offsets[-1] + 1)]
        result = store.fetch(plan_access(nids, offsets))
        np.testing.assert_array_equal(result.rows, expected_rows(nids, dim, version))
        np.testing.assert_array_equal(result.counts, nids + version)
        communicator.world.Barrier()  # all have read before the next version is written
    store.free()


@pytest.mark.parametrize("fetch", ["rma", "alltoall"])
def test_no_rows_at_all(communicator, fetch):
    offsets = make_offsets((5,), communicator.size)
    store = EmbeddingStore(communicator, offsets, 4, fetch)
    write_own(store, communicator.rank)
    result = store.fetch(plan_access(np.empty(0, np.int32), offsets))
    assert result.rows.shape == (0, 4)
    store.free()


def test_whole_table_and_one_owner(communicator):
    """All rows of a table that rank 0 owns alone: one block of neighbours."""
    offsets = make_offsets((3000,) + (0,) * 3, communicator.size)
    store = EmbeddingStore(communicator, offsets, 5)
    write_own(store, communicator.rank)
    nids = np.arange(offsets[-1])[::-1].copy()
    np.testing.assert_array_equal(store.fetch(plan_access(nids, offsets)).rows, expected_rows(nids, 5))
    store.free()


def test_many_stores_one_after_the_other(communicator):
    offsets = make_offsets((10,), communicator.size)
    for _ in range(50):
        store = EmbeddingStore(communicator, offsets, 3)
        write_own(store, communicator.rank)
        store.free()


def test_a_mistake_of_one_rank_is_known_to_all(communicator):
    with pytest.raises(AgreedError, match="no such part"), agreement(communicator.world):
        if communicator.rank == communicator.size - 1:
            raise UserError("no such part")
