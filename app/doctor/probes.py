"""All probes, in order, and the report that they make of this rank."""

from __future__ import annotations

import socket
from typing import Callable

from glpilot.app.doctor import gpus, horovod, machine, mpi, packages
from glpilot.app.doctor.report import Report

# Facts are printed in this order. Packages come first, since the others look at what was imported there; Horovod is
# imported there before MPI starts here, so that mpi4py takes the MPI library that Horovod has loaded.
PROBES: tuple[Callable[[Report], None], ...] = (
    packages.probe,
    mpi.probe,
    horovod.probe,
    machine.probe,
    gpus.probe,
)


def collect() -> Report:
    """Collective over MPI_COMM_WORLD where there is one: this rank's report."""
    report = Report(socket.gethostname())
    for probe in PROBES:
        probe(report)
    return report
