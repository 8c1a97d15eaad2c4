"""How ranks agree: a mistake that one rank meets becomes one of all, so that none waits for a rank that has left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Callable, TypeVar

from glpilot.data.errors import UserError, describe

if TYPE_CHECKING:
    from mpi4py import MPI

Result = TypeVar("Result")


class AgreedError(UserError):
    """A user's mistake that every rank knows of, so that all can end in order."""


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
