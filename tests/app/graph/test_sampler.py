"""Every training node is a seed once an epoch, and a sample is a function of its key."""

from __future__ import annotations

import dgl
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.graph.seeds import SeedSchedule
from helpers.topologies import StubTopology, random_topology


def make_schedules(num_seeds_by_rank, batch_size: int, seed: int = 1) -> list[SeedSchedule]:
    starts = np.cumsum([0, *num_seeds_by_rank])
    return [
        SeedSchedule(np.arange(start, stop) * 3, num_seeds_by_rank, batch_size, seed, rank)
        for rank, (start, stop) in enumerate(zip(starts, starts[1:]))
    ]


num_seeds_lists = st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any)


@settings(deadline=None)
@given(num_seeds_lists, st.integers(1, 15), st.integers(0, 3))
def test_every_training_node_once_an_epoch(num_seeds_by_rank, batch_size, epoch):
    schedules = make_schedules(num_seeds_by_rank, batch_size)
    assert len({schedule.steps_per_epoch for schedule in schedules}) == 1
    num_steps = schedules[0].steps_per_epoch
    batches = [[schedule.seeds(epoch, step) for step in range(num_steps)] for schedule in schedules]
    seen = np.concatenate([seeds for of_rank in batches for seeds in of_rank])
    assert sorted(seen) == (np.arange(sum(num_seeds_by_rank)) * 3).tolist()
    for of_rank, num_seeds in zip(batches, num_seeds_by_rank):
        sizes = [len(seeds) for seeds in of_rank]
        assert sum(sizes) == num_seeds and max(sizes) - min(sizes) <= 1 and max(sizes) <= batch_size
    for step in range(num_steps):
        expected = sum(len(of_rank[step]) for of_rank in batches)
        assert expected > 0
        assert {schedule.num_seeds_global(step) for schedule in schedules} == {expected}


@settings(deadline=None)
@given(num_seeds_lists, st.integers(1, 15))
def test_as_few_steps_as_the_batch_size_allows(num_seeds_by_rank, batch_size):
    num_steps = make_schedules(num_seeds_by_rank, batch_size)[0].steps_per_epoch
    assert (num_steps - 1) * batch_size < max(num_seeds_by_rank) <= num_steps * batch_size


def test_a_rank_without_training_nodes_has_empty_batches():
    schedule = make_schedules([7, 0], 3)[1]
    assert schedule.steps_per_epoch == 3
    assert [len(schedule.seeds(0, step)) for step in range(3)] == [0, 0, 0]
    assert sum(schedule.num_seeds_global(step) for step in range(3)) == 7


def test_batches_are_a_function_of_seed_epoch_step_and_rank():
    def order(epoch: int, seed: int = 1, rank: int = 0) -> list[int]:
        schedule = SeedSchedule(np.arange(50), [50, 50], 10, seed, rank)
        return np.concatenate([schedule.seeds(epoch, step) for step in range(5)]).tolist()

    assert order(2) == order(2)
    assert len({tuple(order(*key)) for key in [(2,), (3,), (2, 7), (2, 1, 1)]}) == 4
    schedule = SeedSchedule(np.arange(50), [50, 50], 10, 1, 0)
    schedule.seeds(7, 0)  # a resumed run begins anywhere
    assert schedule.seeds(2, 3).tolist() == order(2)[30:40]


def edges_of(batch) -> list[set[tuple[int, int]]]:
    """(source nid, target nid) of every block."""
    result = []
    for block in batch.blocks:
        sources, targets = (ends.numpy() for ends in block.edges())
        source_nids, target_nids = block.srcdata[dgl.NID].numpy(), block.dstdata[dgl.NID].numpy()
        edges = set(zip(source_nids[sources].tolist(), target_nids[targets].tolist()))
        assert len(edges) == block.num_edges()  # without replacement
        result.append(edges)
    return result


def content(batch):
    """Everything about a batch, to compare."""
    blocks = [
        (block.srcdata[dgl.NID].tolist(), block.num_dst_nodes(), [ends.tolist() for ends in block.edges()])
        for block in batch.blocks
    ]
    return batch.seeds.tolist(), batch.input_nids.tolist(), blocks


def assert_consistent(batch, topology: StubTopology, seeds: np.ndarray):
    """What every batch promises, whatever was sampled."""
    dtype = topology.indptr.dtype
    assert batch.seeds.tolist() == seeds.tolist()
    assert batch.seeds.dtype == dtype and batch.input_nids.dtype == dtype
    assert batch.input_nids[: len(seeds)].tolist() == seeds.tolist()
    assert len(np.unique(batch.input_nids)) == len(batch.input_nids)
    assert batch.blocks[0].srcdata[dgl.NID].tolist() == batch.input_nids.tolist()
    assert batch.blocks[-1].dstdata[dgl.NID].tolist() == seeds.tolist()
    for block, following in zip(batch.blocks, batch.blocks[1:]):
        assert block.dstdata[dgl.NID].tolist() == following.srcdata[dgl.NID].tolist()
    for block in batch.blocks:
        for data in (block.srcdata, block.dstdata):
            expected = [len(topology.sources_of(nid)) for nid in data[dgl.NID].tolist()]
            assert data["degree"].tolist() == expected and data["degree"].numpy().dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("is_directed", [False, True])
def test_sampled_edges_are_edges_and_no_more_than_the_fanout(is_directed, dtype):
    topology = random_topology(60, 400, is_directed=is_directed, dtype=dtype)
    seeds = np.array([59, 3, 17, 0, 58, 41])
    fanouts = [4, 2]
    batch = NeighborSampler(topology, fanouts).sample(seeds, (1, 2))
    assert_consistent(batch, topology, seeds)
    assert len(batch.blocks) == 2
    for edges, block, fanout in zip(edges_of(batch), batch.blocks, fanouts):  # the input layer's fanout is the first
        assert all(source in topology.sources_of(target) for source, target in edges)
        for target in block.dstdata[dgl.NID].tolist():
            num_sampled = sum(edge[1] == target for edge in edges)
            assert num_sampled == min(fanout, len(topology.sources_of(target)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_fanout_of_minus_one_takes_all(dtype):
    topology = random_topology(40, 200, dtype=dtype)
    seeds = np.array([5, 39, 0])
    batch = NeighborSampler(topology, [-1, -1]).sample(seeds, (0,))
    assert_consistent(batch, topology, seeds)
    for edges, block in zip(edges_of(batch), batch.blocks):
        targets = block.dstdata[dgl.NID].tolist()
        assert edges == {(source, target) for target in targets for source in topology.sources_of(target)}


def test_fanouts_of_both_kinds():
    topology = random_topology(40, 300)
    batch = NeighborSampler(topology, [-1, 2]).sample(np.array([1, 2]), (0,))
    assert batch.blocks[0].num_edges() == batch.blocks[0].dstdata["degree"].sum()
    assert batch.blocks[1].num_edges() == 4


@pytest.fixture
def num_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("num_threads", [1, 3], indirect=True)
def test_equal_keys_give_equal_samples(num_threads):
    topology = random_topology(1000, 10_000)
    seeds = np.arange(0, 1000, 3)
    sampler = NeighborSampler(topology, [3, 3])
    first = content(sampler.sample(seeds, (1, 0, 5, 2)))
    keys = [(2, 0, 5, 2), (1, 1, 5, 2), (1, 0, 6, 2), (1, 0, 5, 3)]
    others = [content(sampler.sample(seeds, key)) for key in keys]
    assert all(other != first for other in others)
    assert content(sampler.sample(seeds, (1, 0, 5, 2))) == first
    for _ in range(5):
        assert content(NeighborSampler(topology, [3, 3]).sample(seeds, (1, 0, 5, 2))) == first
    assert torch.get_num_threads() == num_threads


def test_all_neighbours_are_sampled_in_the_end():
    topology = StubTopology(9, [(0, other) for other in range(1, 9)])
    sampler = NeighborSampler(topology, [2])
    counts = np.zeros(9)
    for key in range(400):
        counts[sampler.sample(np.array([0]), (key,)).input_nids[1:]] += 1
    assert counts.sum() == 800 and (abs(counts[1:] - 100) < 45).all()  # five standard deviations


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("fanouts", [[-1], [3, 3], [-1, 3, 2]])
def test_no_seeds(fanouts, dtype):
    topology = random_topology(20, 60, dtype=dtype)
    batch = NeighborSampler(topology, fanouts).sample(np.empty(0, np.int64), (1,))
    assert_consistent(batch, topology, np.empty(0))
    assert len(batch.blocks) == len(fanouts) and len(batch.input_nids) == 0
    assert all(block.num_edges() == 0 for block in batch.blocks)


@pytest.mark.parametrize("fanouts", [[-1, -1], [3, 3]])
def test_isolated_nodes_are_their_own_input(fanouts):
    batch = NeighborSampler(random_topology(20, 60), fanouts).sample(np.array([19, 18]), (1,))
    assert batch.input_nids.tolist() == [19, 18]
    assert all(block.num_edges() == 0 and block.dstdata["degree"].tolist() == [0, 0] for block in batch.blocks)


def test_a_graph_without_edges():
    batch = NeighborSampler(StubTopology(3, []), [2]).sample(np.array([2]), (1,))
    assert batch.input_nids.tolist() == [2] and batch.blocks[0].num_edges() == 0
