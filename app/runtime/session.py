"""The frame of a command that runs on ranks: all of them begin together, and one rank's error ends all."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator

# Before mpi4py, which takes the MPI that Horovod has loaded.
from glpilot.app.runtime.communicator import Communicator  # isort: skip
from mpi4py import MPI

from glpilot.app.runtime.agreement import AgreedError
from glpilot.data.errors import UserError, describe

FAULT_EXIT_CODE = 1


@contextlib.contextmanager
def session() -> Iterator[Communicator]:
    """A run's frame. Collective at both ends. One rank's error ends all ranks.

    Mistakes that all ranks agree on leave in order: rank 0 raises UserError, the others exit with code 2. Anything
    else, which the other ranks cannot know of, is reported with the rank's number and aborts MPI.
    """
    if not MPI.Is_initialized():
        raise UserError("MPI4PY_RC_INITIALIZE: expected that mpi4py starts MPI, found that it may not: unset it")
    communicator = None
    try:
        communicator = Communicator()
        yield communicator
        communicator.free()
    except AgreedError as error:
        if communicator is not None:
            communicator.free()
        if MPI.COMM_WORLD.Get_rank() == 0:
            raise
        raise SystemExit(2) from error
    except (UserError, OSError) as error:
        rank = MPI.COMM_WORLD.Get_rank()
        if MPI.COMM_WORLD.Get_size() == 1:
            raise
        print(f"glpilot: rank {rank}: {describe(error)}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(2)
    except Exception:
        print(
            f"glpilot: rank {MPI.COMM_WORLD.Get_rank()} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True
        )
        MPI.COMM_WORLD.Abort(FAULT_EXIT_CODE)
