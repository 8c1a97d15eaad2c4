"""Start and end of MPI and Horovod: the ranks of a run, and how they lie on hosts.

Everything of ours runs on a duplicate of MPI_COMM_WORLD; Horovod makes its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

# Read when Horovod starts. A short cycle keeps its operations quick, and its background thread, which enters MPI
# every cycle, drives the progress that other ranks' one-sided reads of our rows depend on.
os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.5")
os.environ.setdefault("DGLBACKEND", "pytorch")

import horovod.torch as hvd
import numpy as np
from mpi4py import MPI

from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.environment import check_environment
from glpilot.app.runtime.launcher import promised_size
from glpilot.data.errors import UserError


class Communicator:
    """The ranks of this run, and those of them on this host.

    Attributes:
        world: our duplicate of MPI_COMM_WORLD.
        host: the ranks that share memory with this one.
        host_of_rank: for each world rank, the lowest world rank on its host; equal numbers share a host.
        is_near: bool [size]: the ranks of this host.
        place_of_rank: for each world rank its rank within its host.
        across_hosts: Horovod's process set of the ranks in this rank's place on every host; None where there is one
            host, or one rank a host, or hosts have different numbers of ranks.
        resources: what holds MPI windows and was not freed yet, in the order of creation, the same on all ranks.
    """

    def __init__(self) -> None:
        """Collective: waits for all ranks of MPI_COMM_WORLD.

        Raises:
            AgreedError: MPI or the environment is not fit to start with.
        """
        with agreement(MPI.COMM_WORLD):
            check_environment(os.environ)
            check_thread_level(MPI.Query_thread())
            check_world_size(MPI.COMM_WORLD.Get_size(), os.environ)
        self.world = MPI.COMM_WORLD.Dup()
        self.rank: int = self.world.Get_rank()
        self.size: int = self.world.Get_size()
        self.host = cast(MPI.Intracomm, self.world.Split_type(MPI.COMM_TYPE_SHARED, key=self.rank))
        leader = self.host.bcast(self.rank)
        self.host_of_rank: list[int] = self.world.allgather(leader)
        self.is_near = np.array(self.host_of_rank) == leader
        self.place_of_rank: list[int] = self.world.allgather(self.host.Get_rank())
        self.resources: list[Any] = []
        groups = ranks_by_place(self.host_of_rank, self.place_of_rank)
        process_sets = [hvd.ProcessSet(ranks) for ranks in groups]
        hvd.init(process_sets=process_sets)
        self.across_hosts = process_sets[self.host.Get_rank()] if process_sets else None
        if hvd.size() != self.size or hvd.rank() != self.rank:
            raise UserError(
                f"Horovod sees rank {hvd.rank()} of {hvd.size()}, MPI sees rank {self.rank} of {self.size}; "
                "Horovod was built for another MPI: run jobs/setup.sh again"
            )

    @property
    def num_hosts(self) -> int:
        return len(set(self.host_of_rank))

    def free(self) -> None:
        """Collective. Frees what is left of windows, then Horovod, then our communicators."""
        while self.resources:
            self.resources[-1].free()
        hvd.shutdown()
        self.host.Free()
        self.world.Free()


def ranks_by_place(host_of_rank: Sequence[int], place_of_rank: Sequence[int]) -> list[list[int]]:
    """The ranks in the same place on their hosts, for each place; none where that is no use (see across_hosts)."""
    groups = [[rank for rank, place in enumerate(place_of_rank) if place == wanted] for wanted in set(place_of_rank)]
    num_hosts = len(set(host_of_rank))
    is_even = all(len(group) == num_hosts for group in groups)
    return groups if is_even and num_hosts > 1 and len(groups) > 1 else []


def check_thread_level(level: int) -> None:
    """Raises UserError unless MPI lets several threads call it: Horovod's thread and ours do."""
    if level < MPI.THREAD_MULTIPLE:
        raise UserError(
            f"MPI: expected thread level MPI_THREAD_MULTIPLE ({MPI.THREAD_MULTIPLE}), got {level}; "
            "unset MPI4PY_RC_THREAD_LEVEL, or use an MPI built with thread support"
        )


def check_world_size(size: int, environment: Mapping[str, str]) -> None:
    """Raises UserError if the launcher promised another number of ranks than MPI sees.

    A program started by the mpirun of another MPI runs as many worlds of one rank, each doing the whole job.
    """
    promised, name = promised_size(environment)
    if promised not in (None, size):
        raise UserError(
            f"MPI: the launcher promised {promised} ranks ({name}), but MPI sees {size}; start the program with "
            "the mpirun of the MPI it was built for (run: glpilot doctor), under Slurm with srun --mpi=pmi2"
        )
