"""`glpilot doctor`: what is installed, what is wrong with it, and how to mend it. Also under mpirun."""

from __future__ import annotations

import argparse
import sys

SUMMARY = "show the installed stack and this machine, name what is wrong and how to mend it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose."""


def run(arguments: argparse.Namespace) -> int:
    """Collective over MPI_COMM_WORLD where there is one; rank 0 prints. Exit code 1 if anything is wrong."""
    from glpilot.app.doctor.probes import collect
    from glpilot.app.doctor.render import render

    reports = [collect()]
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is not None:
        reports = MPI.COMM_WORLD.gather(reports[0])
        if reports is None:
            num_findings = MPI.COMM_WORLD.bcast(None)
            return 1 if num_findings else 0
    lines, num_findings = render(reports)
    print("\n".join(lines), flush=True)
    if MPI is not None:
        MPI.COMM_WORLD.bcast(num_findings)
    return 1 if num_findings else 0
