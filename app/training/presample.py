"""The hotness of a run's rows: measured before training, kept in the run's folder, measured again on request.

runs/NAME/hotness/epoch-E/rank-R.h5 holds in how many of the counted steps each row was read by rank R, as of epoch E.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
from mpi4py import MPI

from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.embedding.copies.hotness import AccessCounter, Hotness, inclusion_probabilities, log_absences
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.data import schema
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import create_file, open_file, read_dataset, write_dataset

MAX_PRESAMPLE_STEPS = 2000  # of `auto`
PRESAMPLE_KEY = 2**31 - 2  # keeps these samples apart from those of any epoch and of evaluations


def measure_hotness(communicator: Communicator, config: Config, dataset: Dataset, schedule: SeedSchedule) -> tuple[Hotness, str]:
    """Collective: how often rows will be used, by sampling or by calculation, and which of the two it was."""
    method = config.cache.hotness
    num_steps = config.cache.presample_epochs * schedule.steps_per_epoch
    if method == "auto":
        method = "presample" if num_steps <= MAX_PRESAMPLE_STEPS else "analytical"
    if method == "presample":
        access_rates = _presample(communicator, config, dataset, schedule).rates()
    else:
        access_rates = _calculate(config, dataset, schedule)
    return merge_hotness(communicator, access_rates), method


def merge_hotness(communicator: Communicator, access_rates: np.ndarray) -> Hotness:
    """Collective: every rank's access rates, float32 [num_nodes], give the update rates."""
    log_untouched = log_absences(access_rates)
    communicator.world.Allreduce(MPI.IN_PLACE, log_untouched)
    update_rates = -np.expm1(log_untouched)
    communicator.world.Bcast(update_rates)  # the hot set must be the same everywhere, to the last bit
    return Hotness(access_rates, update_rates)


def hotness_path(run: Path, epoch: int, rank: int) -> Path:
    return Path(run) / "hotness" / f"epoch-{epoch}" / f"rank-{rank:05d}.h5"


def save_hotness(communicator: Communicator, run: Path, epoch: int, hotness: Hotness) -> None:
    """Collective: keep the hotness as of an epoch with the run.

    Raises:
        AgreedError: it cannot be written.
    """
    with agreement(communicator.world):
        path = hotness_path(run, epoch, communicator.rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        with create_file(path, schema.HOTNESS_FORMAT) as file:
            file.attrs[schema.NUM_RANKS] = communicator.size
            write_dataset(file, schema.ACCESS_RATES, hotness.access_rates)


def load_hotness(communicator: Communicator, run: Path, epoch: int, num_nodes: int) -> Hotness | None:
    """Collective: what `save_hotness` kept; None if that was not for so many ranks, or is not there any more.

    Raises:
        AgreedError: a file is damaged.
    """
    rates = None
    with agreement(communicator.world):
        path = hotness_path(run, epoch, communicator.rank)
        if path.is_file():
            with open_file(path, schema.HOTNESS_FORMAT) as file:
                if file.attrs.get(schema.NUM_RANKS) == communicator.size:
                    rates = read_dataset(file, schema.ACCESS_RATES)
                    if rates.shape != (num_nodes,):
                        raise UserError(f"{path}: is of another graph; remove the folder {path.parent.parent}")
    if not communicator.world.allreduce(rates is not None, op=MPI.LAND):
        return None
    return merge_hotness(communicator, rates)


def _presample(communicator: Communicator, config: Config, dataset: Dataset, schedule: SeedSchedule) -> AccessCounter:
    counter = AccessCounter(dataset.book.num_nodes)
    sampler = NeighborSampler(dataset.topology, config.sampler.fanouts, with_degrees=False)
    for epoch in range(config.cache.presample_epochs):
        for step in range(schedule.steps_per_epoch):
            key = (config.train.seed, PRESAMPLE_KEY, epoch, step, communicator.rank)
            counter.add(sampler.sample(schedule.seeds(epoch, step), key).input_nids)
    return counter


def _calculate(config: Config, dataset: Dataset, schedule: SeedSchedule) -> np.ndarray:
    topology = dataset.topology
    seed_probabilities = np.zeros(dataset.book.num_nodes, np.float32)
    seed_probabilities[dataset.nids_of(dataset.nodes.train_mask)] = 1 / schedule.steps_per_epoch
    return inclusion_probabilities(topology.indptr, topology.indices, seed_probabilities, config.sampler.fanouts)
