"""MPI: which library mpi4py takes, what it can do, and does the launcher belong to it?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module

from glpilot.app.doctor.report import SETUP, Finding, Report, first_line
from glpilot.app.runtime.launcher import promised_size

THREAD_LEVELS = ("MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE")


def probe(report: Report) -> None:
    """Collective over MPI_COMM_WORLD where there is one: starts MPI, unless it runs already."""
    try:
        MPI = import_module("mpi4py.MPI")
    except Exception as error:
        report.facts["MPI library"] = "none"
        report.findings.append(Finding(f"mpi4py finds no MPI library ({first_line(error)})", SETUP))
        return
    library = MPI.Get_library_version().strip("\0 \n")
    flavour = mpi_flavour(library)
    report.facts["MPI library"] = " ".join(flavour) if flavour else library.splitlines()[0]
    report.facts["MPI loaded from"] = ", ".join(loaded_mpi_libraries()) or "unknown"
    report.facts["MPI thread level"] = THREAD_LEVELS[MPI.Query_thread()]
    report.findings += check_mpi_version(library) + check_thread_level(MPI.Query_thread())
    report.findings += check_world_size(MPI.COMM_WORLD.Get_size(), os.environ)

    path = shutil.which("mpirun")
    mpirun_version = output_of([path, "--version"]) if path else ""
    launcher = mpi_flavour(mpirun_version)
    report.facts["mpirun"] = f"{path} ({' '.join(launcher)})" if path and launcher else str(path)
    report.findings += check_mpirun(path, mpirun_version, library)


def check_thread_level(level: int) -> list[Finding]:
    if level == len(THREAD_LEVELS) - 1:
        return []
    return [
        Finding(
            f"MPI provides {THREAD_LEVELS[level]}: expected MPI_THREAD_MULTIPLE, since Horovod calls MPI in a thread",
            "unset MPI4PY_RC_THREAD_LEVEL, or use an MPI built with thread support",
        )
    ]


def check_mpi_version(library_version: str) -> list[Finding]:
    flavour = mpi_flavour(library_version)
    if flavour and flavour[0] == "Open MPI" and int(flavour[1].split(".")[0]) < 5:
        return [
            Finding(
                f"Open MPI {flavour[1]} has no one-sided component over TCP under MPI_THREAD_MULTIPLE",
                "use Open MPI 5 or MPICH; unset GLPILOT_MPI takes the MPICH from PyPI",
            )
        ]
    return []


def check_world_size(world_size: int, environ: Mapping[str, str]) -> list[Finding]:
    """Silent singletons: an mpirun of another MPI starts as many worlds of one rank."""
    promised, name = promised_size(environ)
    if promised in (None, world_size):
        return []
    return [
        Finding(
            f"the launcher promised {promised} ranks ({name}), and MPI sees {world_size}",
            "start with the mpirun of the MPI above, .venv/bin/mpirun if it is there; under Slurm with srun --mpi=pmi2",
        )
    ]


def check_mpirun(path: str | None, mpirun_version: str, library_version: str) -> list[Finding]:
    """Does the mpirun on PATH belong to the MPI library?"""
    remedy = "source .venv/bin/activate, or put .venv/bin (or a system MPI's bin) first on PATH"
    if path is None:
        return [Finding("no mpirun on PATH", remedy)]
    launcher, library = mpi_flavour(mpirun_version), mpi_flavour(library_version)
    if launcher is None or library is None or launcher == library:
        return []
    return [Finding(f"mpirun on PATH ({path}) is of {' '.join(launcher)}, the library is {' '.join(library)}", remedy)]


def mpi_flavour(text: str) -> tuple[str, str] | None:
    """(name, version) from MPI's library version string or `mpirun --version`; None if it is another MPI."""
    found = re.search(r"(?:MPICH Version:|HYDRA build details:\s*Version:)\s*(\S+)", text)
    if found:
        return "MPICH", found[1]
    found = re.search(r"\(?Open MPI\)? v?(\d[\w.]*)", text)
    return ("Open MPI", found[1].rstrip(",")) if found else None


def loaded_mpi_libraries() -> list[str]:
    """Files of the MPI libraries in this process's memory."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    return sorted(path for path in paths if re.search(r"/libmpi(ch)?(_abi)?\.so[.\d]*$", path))


def output_of(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
