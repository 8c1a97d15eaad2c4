"""Start and end of MPI and Horovod, and the agreements that keep all ranks together.

Everything of ours runs on a duplicate of MPI_COMM_WORLD; Horovod makes its own.
"""
from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any, Callable, Iterator, Mapping, Sequence, TypeVar

# Read when Horovod starts. A short cycle keeps its operations quick, and its background thread, which enters MPI
# every cycle, drives the progress that other ranks' one-sided reads of our rows depend on.
os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.5")
os.environ.setdefault("DGLBACKEND", "pytorch")

import horovod.torch as hvd  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mpi4py import MPI  # noqa: E402

from glpilot.app.launcher import promised_size  # noqa: E402
from glpilot.data.errors import UserError, describe  # noqa: E402

FAULT_EXIT_CODE = 1
Result = TypeVar("Result")


class AgreedError(UserError):
    """A user's mistake that every rank knows of, so that all can end in order."""


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
        """Collective: waits for all ranks of MPI_COMM_WORLD."""
        check_thread_level(MPI.Query_thread())
        check_world_size(MPI.COMM_WORLD.Get_size(), os.environ)
        self.world: MPI.Intracomm = MPI.COMM_WORLD.Dup()
        self.rank: int = self.world.Get_rank()
        self.size: int = self.world.Get_size()
        self.host: MPI.Intracomm = self.world.Split_type(MPI.COMM_TYPE_SHARED, key=self.rank)
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


def set_num_threads(num_threads: int) -> None:
    """Threads per rank of torch, and of DGL's operations in the models, which share its OpenMP runtime."""
    os.environ["OMP_NUM_THREADS"] = str(num_threads)
    torch.set_num_threads(num_threads)


@contextlib.contextmanager
def session() -> Iterator[Communicator]:
    """A run's frame. Collective at both ends. One rank's error ends all ranks.

    Mistakes that all ranks agree on leave in order: rank 0 raises UserError, the others exit with code 2. Anything
    else, which the other ranks cannot know of, is reported with the rank's number and aborts MPI.
    """
    communicator = None
    try:
        communicator = Communicator()
        yield communicator
        communicator.free()
    except AgreedError as error:
        communicator.free()
        if communicator.rank == 0:
            raise
        raise SystemExit(2) from error
    except (UserError, OSError) as error:
        rank = MPI.COMM_WORLD.Get_rank()
        if MPI.COMM_WORLD.Get_size() == 1:
            raise
        print(f"glpilot: rank {rank}: {describe(error)}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(2)
    except Exception:
        print(f"glpilot: rank {MPI.COMM_WORLD.Get_rank()} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(FAULT_EXIT_CODE)


@contextlib.contextmanager
def agreement(comm: MPI.Intracomm) -> Iterator[None]:
    """Collective at exit. Run local work that a user's mistake can break; then all ranks raise, or none.

    Raises:
        AgreedError: the mistake of the lowest rank that met one, on every rank.
    """
    mistake = None
    try:
        yield
    except (UserError, OSError) as error:
        mistake = describe(error)
    mistakes = [(rank, text) for rank, text in enumerate(comm.allgather(mistake)) if text is not None]
    if mistakes:
        rank, text = mistakes[0]
        raise AgreedError(text if len(mistakes) == comm.Get_size() else f"{text} (rank {rank})")


def on_first_rank(comm: MPI.Intracomm, work: Callable[[], Result]) -> Result:
    """Collective: rank 0 alone works, and every rank gets its result.

    Raises:
        AgreedError: rank 0's mistake, on every rank.
    """
    result = mistake = None
    if comm.Get_rank() == 0:
        try:
            result = work()
        except (UserError, OSError) as error:
            mistake = describe(error)
    result, mistake = comm.bcast((result, mistake))
    if mistake is not None:
        raise AgreedError(mistake)
    return result
