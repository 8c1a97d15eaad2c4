"""The hotness of a run's rows before training: counted in epochs that are sampled only, or calculated."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from glpilot.app.config.keys import Config
from glpilot.app.embedding.copies.hotness import AccessCounter, Hotness, inclusion_probabilities, log_absences
from glpilot.app.graph.dataset import Dataset
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.runtime.communicator import Communicator

MAX_PRESAMPLE_STEPS = 2000  # of `auto`
PRESAMPLE_KEY = 2**31 - 2  # keeps these samples apart from those of any epoch and of evaluations


def measure_hotness(
    communicator: Communicator, config: Config, dataset: Dataset, schedule: SeedSchedule
) -> tuple[Hotness, str]:
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
