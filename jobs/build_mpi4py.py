"""Builds a wheel of mpi4py against the MPI whose mpicc is on PATH, or finds the one built before.

Run by jobs/setup.sh for a system MPI, whose library may have any name: mpi4py's own wheel asks for libmpi.so.12 or
libmpi.so.40, and Debian's MPICH is called libmpich.so.12. Prints the wheel's path.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

from wheel_cache import BuildError, find_or_build, run_logged


def build(folder: Path, log: Path) -> Path:
    wheels = folder / "wheels"
    # One huge generated file, which only forwards calls: optimising it in full takes minutes and gains nothing.
    environ = {**os.environ, "MPI4PY_BUILD_MPICC": "mpicc", "CFLAGS": "-O1 -g0"}
    run_logged(
        # pip's own cache does not tell one MPI from another
        [sys.executable, "-m", "pip", "--no-input", "--no-cache-dir", "wheel", "--no-deps", "--no-binary", "mpi4py"]
        + ["--wheel-dir", str(wheels), f"mpi4py=={version('mpi4py')}"],
        log,
        environ,
    )
    return wheels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps built wheels")
    parser.add_argument("--mpi", required=True, help="the MPI's name, version and library")
    arguments = parser.parse_args()
    digest = hashlib.sha256(arguments.mpi.encode()).hexdigest()[:12]
    key = f"mpi4py-{version('mpi4py')}-{sys.implementation.cache_tag}-{digest}"
    try:
        print(find_or_build(arguments.cache, key, build, f"{arguments.mpi}\n"))
    except BuildError as error:
        print(f"build_mpi4py.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
