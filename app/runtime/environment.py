"""Environment variables that would make Horovod or mpi4py fail without a word, if they were believed."""

from __future__ import annotations

from collections.abc import Mapping

from glpilot.data.errors import UserError

# Horovod is built with MPI alone; another choice, or a word it does not know, ends the process by a signal.
MUST_BE_MPI = ("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS")


def mistakes(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong, and what to do about it."""
    return [
        (
            f"{name}: expected mpi or nothing, got {environment[name]!r}; Horovod was built with MPI alone",
            f"unset {name}",
        )
        for name in MUST_BE_MPI
        if environment.get(name, "").lower() not in ("", "mpi")
    ]


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises UserError if a variable is set that ranks cannot start with."""
    for problem, remedy in mistakes(environment):
        raise UserError(f"{problem}: {remedy}")
