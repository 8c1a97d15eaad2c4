"""Which seed nodes each step trains on, and the neighbourhoods sampled for them.

Everything random is a pure function of (seed, epoch, step, rank), so a resumed run needs no generator's state.
"""
from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Iterator, Sequence

import dgl
import numpy as np
import torch

from glpilot.app.topology import Topology


@dataclass(frozen=True)
class Batch:
    """Seeds of one step of one rank, with their sampled neighbourhoods.

    Attributes:
        seeds: int32 or int64 [num_seeds] nids.
        input_nids: same dtype [num_inputs], distinct; the first num_seeds of them are the seeds.
        blocks: one DGL block per layer, input layer first; if asked for, each carries "degree" (true in-degrees,
            float32) on its source and destination nodes.
    """

    seeds: np.ndarray
    input_nids: np.ndarray
    blocks: list[dgl.DGLGraph]


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


class NeighborSampler:
    """DGL's neighbour sampling, without replacement, on the host's shared topology."""

    def __init__(self, topology: Topology, fanouts: Sequence[int], with_degrees: bool = True):
        """`fanouts` holds neighbours per node by layer, input layer first; -1 takes all."""
        self._topology = topology
        self._with_degrees = with_degrees
        self._sampler = dgl.dataloading.NeighborSampler(list(fanouts))

    def sample(self, seeds: np.ndarray, key: Sequence[int]) -> Batch:
        """Sample the neighbourhoods of distinct `seeds`; equal keys give equal samples."""
        seeds = seeds.astype(self._topology.indptr.dtype, copy=False)
        with _one_thread():
            dgl.seed(int(np.random.SeedSequence(key).generate_state(1)[0] >> 1))
            input_nids, _, blocks = self._sampler.sample_blocks(self._topology.graph, torch.from_numpy(seeds))
        for block in blocks if self._with_degrees else ():
            degrees = self._topology.in_degrees(block.srcdata[dgl.NID].numpy()).astype(np.float32)
            block.srcdata["degree"] = torch.from_numpy(degrees)
            block.dstdata["degree"] = block.srcdata["degree"][: block.num_dst_nodes()]
        return Batch(seeds, input_nids.numpy(), blocks)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """With more threads, which of DGL's generators draws for a node, and the order of inputs, vary from call to call."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of the OpenMP runtime that DGL shares
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
