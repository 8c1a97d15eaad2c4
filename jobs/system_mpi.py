"""Finds the MPI whose mpicc is on PATH, and refuses one that GLPilot cannot run on.

Run by jobs/setup.sh when GLPILOT_MPI=system. Prints three lines: MPI's name and version, libmpi's name (as the
loader looks for it), and its file. Needs only the standard library.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    Dl_info where;
    void *symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (MPI_Get_library_version(version, &length) || !symbol || !dladdr(symbol, &where))
        return 1;
    printf("%s\n%s\n", where.dli_fname, version);
    return 0;
}
"""


class MpiError(RuntimeError):
    """No MPI to use; the message is for the user."""


def refuse_version(text: str) -> str | None:
    """Why the MPI that describes itself so cannot be used; None if it can.

    `text` is the output of `mpirun --version` or MPI's library version string.
    """
    open_mpi = re.search(r"\(?(?:Open MPI|OpenRTE)\)?\s+v?((\d+)[\d.]*)", text)
    if open_mpi and int(open_mpi[2]) < 5:
        return (
            f"Open MPI {open_mpi[1]} has no one-sided component over TCP under MPI_THREAD_MULTIPLE, "
            "which fetching rows needs: use Open MPI 5 or MPICH, or unset GLPILOT_MPI for the MPICH from PyPI"
        )
    if open_mpi or "MPICH" in text or "HYDRA" in text:
        return None
    first_line = next(iter(text.strip().splitlines()), "nothing")
    return f"it is neither MPICH nor Open MPI 5; it says: {first_line}"


def describe(text: str) -> str:
    """Name and version out of MPI's library version string."""
    found = re.search(r"(MPICH)[ \t]+Version:\s*(\S+)", text) or re.search(r"(Open MPI) v?([\w.]+)", text)
    return f"{found[1]} {found[2]}" if found else text.splitlines()[0]


def output_of(command: list[str]) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise MpiError(f"`{' '.join(command)}` failed: {done.stdout.strip()[-600:]}")
    return done.stdout


def find_system_mpi() -> tuple[str, Path]:
    """The library version string and libmpi, unresolved. Raises MpiError."""
    for wrappers in (("mpicc",), ("mpicxx", "mpic++"), ("mpirun",)):
        if not any(map(shutil.which, wrappers)):
            raise MpiError(
                f"no {wrappers[0]} on PATH: install MPICH or Open MPI 5 with its compiler wrappers, load its "
                "module, or unset GLPILOT_MPI for the MPICH from PyPI"
            )
    reason = refuse_version(output_of(["mpirun", "--version"]))
    if reason:
        raise MpiError(f"{shutil.which('mpirun')} cannot be used: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text(PROBE)
        output_of(["mpicc", str(source), "-o", str(program), "-ldl"])
        library, text = output_of([str(program)]).split("\n", 1)
    reason = refuse_version(text)
    if reason:
        raise MpiError(f"{shutil.which('mpicc')} cannot be used: {reason}")
    return text.strip(), Path(library)


def main() -> int:
    try:
        text, library = find_system_mpi()
    except MpiError as error:
        print(f"GLPILOT_MPI=system: {error}", file=sys.stderr)
        return 1
    print(describe(text), library.name, library.resolve(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
