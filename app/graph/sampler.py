"""The neighbourhoods sampled for a step's seeds: a pure function of a key, so no generator's state is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dgl
import numpy as np
import torch

from glpilot.app.graph.topology import Topology


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
    """With more threads, which generator of DGL's draws for a node, and the order of inputs, vary by the call."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of the OpenMP runtime that DGL shares
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
