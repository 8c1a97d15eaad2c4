"""Which nodes each step trains on.

A pure function of (seed, epoch, step, rank), so a resumed run needs no generator's state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class SeedSchedule:
    """The seeds of every step: each rank's training nodes in a new order each epoch, spread evenly over the steps.

    All ranks make the same number of steps, and a rank's batches differ by one seed at most, so no step is left
    to a single rank. A rank with few training nodes has small, possibly empty batches.
    """

    def __init__(self, train_nids: np.ndarray, num_seeds_by_rank: Sequence[int], batch_size: int, seed: int, rank: int):
        """
        Args:
            train_nids: this rank's training nodes.
            num_seeds_by_rank: how many training nodes each rank has.
            batch_size: seeds per rank and step, at most.
        """
        self._train_nids = train_nids
        self._num_seeds_by_rank = np.asarray(num_seeds_by_rank, np.int64)
        self._seed = seed
        self._rank = rank
        self.steps_per_epoch = int(-(-self._num_seeds_by_rank.max() // batch_size))
        self._epoch = -1
        self._order = train_nids

    def seeds(self, epoch: int, step: int) -> np.ndarray:
        """This rank's seeds in a step of an epoch."""
        if epoch != self._epoch:
            self._order = np.random.default_rng((self._seed, epoch, self._rank)).permutation(self._train_nids)
            self._epoch = epoch
        num_seeds = len(self._order)
        return self._order[num_seeds * step // self.steps_per_epoch : num_seeds * (step + 1) // self.steps_per_epoch]

    def num_seeds_global(self, step: int) -> int:
        """Seeds of all ranks together in a step, the same in every epoch."""
        bounds = self._num_seeds_by_rank[:, None] * np.array([step, step + 1]) // self.steps_per_epoch
        return int((bounds[:, 1] - bounds[:, 0]).sum())
