"""Hotness over all ranks: measured by either method, kept, read again, and told in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from glpilot.app.embedding.copies.hotness import Hotness
from glpilot.app.embedding.copies.traffic import Layout
from glpilot.app.graph.dataset import load_dataset
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.results.hotness_file import hotness_path, load_access_rates, save_access_rates
from glpilot.app.results.hotness_report import HotnessReport
from glpilot.app.runtime.agreement import AgreedError
from glpilot.app.training.presample import measure_hotness, merge_hotness
from helpers.runs import make_config, write_parts

pytestmark = pytest.mark.mpi


@pytest.fixture
def dataset(communicator, shared_folder):
    dataset = load_dataset(communicator, write_parts(communicator, shared_folder))
    yield dataset
    dataset.free()


def schedule_of(communicator, dataset, batch_size=12):
    train_nids = dataset.nids_of(dataset.nodes.train_mask)
    return SeedSchedule(train_nids, communicator.world.allgather(len(train_nids)), batch_size, 1, communicator.rank)


@pytest.mark.parametrize("method", ["presample", "analytical"])
def test_measured_rates_are_those_of_training(communicator, dataset, method):
    config = make_config(sampler__fanouts="4,3", cache__hotness=method, cache__presample_epochs=20)
    schedule = schedule_of(communicator, dataset)
    hotness, used = measure_hotness(communicator, config, dataset, schedule)
    assert used == method
    sampler = NeighborSampler(dataset.topology, config.sampler.fanouts)
    num_epochs, num_nodes = 20, dataset.book.num_nodes
    read, updated = np.zeros(num_nodes), np.zeros(num_nodes)
    for epoch in range(num_epochs):
        for step in range(schedule.steps_per_epoch):
            mine = np.zeros(num_nodes, bool)
            mine[sampler.sample(schedule.seeds(epoch, step), (7, epoch, step, communicator.rank)).input_nids] = True
            read += mine
            updated += np.logical_or.reduce(communicator.world.allgather(mine))
    num_steps = num_epochs * schedule.steps_per_epoch
    assert hotness.access_rates.sum() == pytest.approx(read.sum() / num_steps, rel=0.1)
    assert hotness.update_rates.sum() == pytest.approx(updated.sum() / num_steps, rel=0.1)
    if read.any():
        assert np.corrcoef(hotness.access_rates, read)[0, 1] > 0.8


def test_auto_calculates_where_sampling_takes_long(communicator, dataset):
    config = make_config(cache__presample_epochs=100_000)
    assert measure_hotness(communicator, config, dataset, schedule_of(communicator, dataset))[1] == "analytical"


def test_updates_by_any_rank(communicator):
    rates = np.full(3, 0.5, np.float32)
    rates[0] = 1.0 if communicator.rank == 0 else 0.0
    rates[1] = 0.0
    hotness = merge_hotness(communicator, rates)
    assert hotness.update_rates == pytest.approx([1, 0, 1 - 0.5**communicator.size], abs=1e-5)
    assert len(set(communicator.world.allgather(hotness.update_rates.tobytes()))) == 1


def test_hotness_is_kept_for_the_same_number_of_ranks(communicator, shared_folder):
    rates = np.random.default_rng(communicator.rank).random(20).astype(np.float32)
    save_access_rates(communicator, shared_folder, 3, rates)
    np.testing.assert_array_equal(load_access_rates(communicator, shared_folder, 3, 20), rates)
    assert load_access_rates(communicator, shared_folder, 2, 20) is None
    communicator.world.Barrier()
    if communicator.rank == 0:
        hotness_path(shared_folder, 3, communicator.size - 1).unlink()
    communicator.world.Barrier()
    assert load_access_rates(communicator, shared_folder, 3, 20) is None


def test_hotness_of_another_graph_or_damaged_is_refused(communicator, shared_folder):
    save_access_rates(communicator, shared_folder, 0, np.zeros(20, np.float32))
    with pytest.raises(AgreedError, match="of another graph"):
        load_access_rates(communicator, shared_folder, 0, 21)
    communicator.world.Barrier()
    hotness_path(shared_folder, 0, communicator.rank).write_bytes(b"no HDF5")
    with pytest.raises(AgreedError, match="not a readable HDF5 file"):
        load_access_rates(communicator, shared_folder, 0, 20)


def test_the_report(communicator, shared_folder):
    """One row in ten has all updates, and all accesses are of the others."""
    updates = np.repeat(np.array([1, 0], np.float32), [10, 90])
    hotness = Hotness(np.where(updates > 0, 0, 0.2).astype(np.float32), updates)
    report = HotnessReport(communicator, hotness, np.ones(100, bool), Layout(2, 100))
    assert report.line("test") == (
        "hotness (by test): the most updated 10% of the rows have 100% of the updates and 0% of the accesses; "
        "the rarest half has 0% of the updates, 56% of the accesses, 56% of the loads from other hosts"
    )
    if communicator.rank == 0:
        report.write(shared_folder)
        assert (shared_folder / "frequency.png").read_bytes().startswith(b"\x89PNG")
        lines = (shared_folder / "expected.txt").read_text().splitlines()
        assert "of 18 rows of other hosts" in lines[0]
        assert [line.split() for line in lines if line.startswith("     1 ")] == [
            ["1", "7", "2", "1", "0"],
            ["1", "18"],
        ]
