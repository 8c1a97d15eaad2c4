"""Horovod: was it built for the MPI that mpi4py takes, and does it see the same ranks?"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from glpilot.app.doctor.mpi import check_thread_level, loaded_mpi_libraries
from glpilot.app.doctor.report import SETUP, Finding, Report
from glpilot.app.runtime.environment import mistakes


def probe(report: Report) -> None:
    """Collective over MPI_COMM_WORLD. Leaves Horovod as it was, running or not: it can be started only once."""
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is None:
        return  # reported already
    hvd = sys.modules.get("horovod.torch")
    if hvd is not None:
        report.findings += check_same_mpi(loaded_mpi_libraries()) + check_horovod_build(hvd.mpi_built())
        built = {"MPI": hvd.mpi_built(), "NCCL": hvd.nccl_built(), "Gloo": hvd.gloo_built(), "CUDA": hvd.cuda_built()}
        report.facts["Horovod operations"] = ", ".join(name for name, is_built in built.items() if is_built) or "none"
    wrong = check_environment(os.environ)
    report.findings += wrong
    can_start = hvd is not None and hvd.mpi_built() and not check_thread_level(MPI.Query_thread()) and not wrong
    if not MPI.COMM_WORLD.allreduce(can_start, op=MPI.LAND) or hvd is None:
        return  # starting Horovod waits for all ranks
    was_running = hvd.is_initialized()
    if not was_running:
        hvd.init()
    report.findings += check_horovod_world(hvd.size(), MPI.COMM_WORLD.Get_size())
    if not was_running:
        hvd.shutdown()


def check_environment(environ: Mapping[str, str]) -> list[Finding]:
    """Variables that Horovod would end the process for."""
    return [Finding(problem, remedy) for problem, remedy in mistakes(environ)]


def check_same_mpi(libraries: Sequence[str]) -> list[Finding]:
    """`libraries`: files of MPI libraries that are loaded once mpi4py and Horovod are imported."""
    if len(libraries) <= 1:
        return []
    return [
        Finding(
            f"mpi4py and Horovod have loaded different MPI libraries: {', '.join(libraries)}",
            f"remove .venv, and {SETUP}",
        )
    ]


def check_horovod_build(mpi_built: bool) -> list[Finding]:
    return [] if mpi_built else [Finding("Horovod was built without MPI", SETUP)]


def check_horovod_world(horovod_size: int, world_size: int) -> list[Finding]:
    if horovod_size == world_size:
        return []
    return [Finding(f"Horovod sees {horovod_size} ranks, MPI sees {world_size}: built for another MPI", SETUP)]
