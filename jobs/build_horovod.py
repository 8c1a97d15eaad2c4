"""Builds a wheel of Horovod, patched for this stack, or finds the one that an earlier set-up has built.

Run by jobs/setup.sh with the Python of the virtual environment that Horovod is for; torch, mpi4py, cmake and an
MPI must be in that environment, or the MPI's compiler wrappers on PATH. Prints the wheel's path.

Horovod's last release needs five small changes. Each is an exact replacement that refuses a source in which
it does not find what it replaces, so that a changed source is noticed here and not at run time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from wheel_cache import BuildError, find_or_build, run_logged

HOROVOD_VERSION = "0.28.1"

# What we always build: CPU operations over MPI, for PyTorch alone.
FIXED_OPTIONS = {
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITHOUT_GLOO": "1",
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_CPU_OPERATIONS": "MPI",
}
# What the user may choose: GPU operations, and where CUDA and NCCL lie.
USER_OPTIONS = (
    "HOROVOD_GPU_OPERATIONS",
    "HOROVOD_CUDA_HOME",
    "HOROVOD_BUILD_CUDA_CC_LIST",
    "HOROVOD_NCCL_HOME",
    "HOROVOD_NCCL_INCLUDE",
    "HOROVOD_NCCL_LIB",
    "HOROVOD_NCCL_LINK",
)


@dataclass(frozen=True)
class Patch:
    """Replace `old` by `new` in `file`, where it must occur exactly once."""

    file: str
    old: str
    new: str


COMMON_PATCHES = (
    # torch's headers are C++17
    Patch("CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)"),
    Patch("horovod/torch/CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)"),
    # horovodrun must recognise MPICH's mpirun, which calls itself HYDRA
    Patch("horovod/runner/mpi_run.py", "elif 'MPICH' in output:", "elif 'MPICH' in output or 'HYDRA' in output:"),
    # The wheel serves every environment with the same MPI: find libmpi in the environment's own lib folder.
    # A path into the environment that built it would load a second MPI into the same process.
    Patch(
        "CMakeLists.txt",
        "set(CMAKE_CXX_EXTENSIONS OFF)\n",
        "set(CMAKE_CXX_EXTENSIONS OFF)\n"
        "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)\n"
        'set(CMAKE_INSTALL_RPATH "$ORIGIN/../../../..;$ORIGIN/../../torch/lib")\n',
    ),
)
# A CPU build against a CUDA torch must not stumble over a partial CUDA toolkit.
CPU_PATCHES = (
    Patch(
        "cmake/Modules/FindPytorch.cmake",
        "print(True if ((torch.version.cuda is not None) and (CUDA_HOME is not None)) else False)",
        "print(False)",
    ),
)


def choose_patches(with_gpu: bool) -> tuple[Patch, ...]:
    return COMMON_PATCHES if with_gpu else COMMON_PATCHES + CPU_PATCHES


def apply_patches(source: Path, patches: Sequence[Patch]) -> None:
    """Patch the source in place; BuildError, and nothing changed, if one patch does not fit."""
    texts: dict[str, str] = {}
    for patch in patches:
        if patch.file not in texts:
            try:
                texts[patch.file] = (source / patch.file).read_text()
            except FileNotFoundError:
                raise BuildError(f"{patch.file}: no such file in Horovod's source; the patches do not fit it") from None
        found = texts[patch.file].count(patch.old)
        if found != 1:
            raise BuildError(
                f"{patch.file}: expected {patch.old!r} once, found it {found} times; "
                f"the patches were written for Horovod {HOROVOD_VERSION}"
            )
        texts[patch.file] = texts[patch.file].replace(patch.old, patch.new)
    for file, text in texts.items():
        (source / file).write_text(text)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack plain files and folders; BuildError for a member that would land outside `folder`, or a link."""
    root = folder.resolve()
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        for member in members:
            inside = (root / member.name).resolve().is_relative_to(root)
            if not inside or not (member.isfile() or member.isdir()):
                raise BuildError(f"{archive.name}: refusing to unpack {member.name!r}")
        tar.extractall(root, members)


def choose_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Horovod's build options: ours, and those that the user has set."""
    return {**FIXED_OPTIONS, **{name: environ[name] for name in USER_OPTIONS if environ.get(name)}}


def build_key(mpi_version: str, torch_version: str, options: Mapping[str, str]) -> str:
    """Names the wheel: the readable part for people, the hash over everything that the binary depends on."""
    patches = choose_patches("HOROVOD_GPU_OPERATIONS" in options)
    parts = [HOROVOD_VERSION, sys.implementation.cache_tag, platform.machine(), " ".join(platform.libc_ver())]
    parts += [torch_version, mpi_version, repr(sorted(options.items())), repr(patches)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return f"horovod-{HOROVOD_VERSION}-{sys.implementation.cache_tag}-torch-{torch_version}-{digest}"


def mpi_library_version() -> str:
    """The own description of the MPI that mpi4py loads; may be asked before MPI is initialised."""
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    return MPI.Get_library_version().strip("\0 \n")


def build(folder: Path, log: Path, options: Mapping[str, str]) -> Path:
    """Download, patch and build in `folder`; returns the folder that holds the wheel."""
    # The MPI compiler wrappers and Horovod's own scripts do not quote paths: reach the environment by one
    # without spaces.
    environment = folder / "env"
    environment.symlink_to(sys.prefix)
    python = str(environment / "bin" / "python")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
    environ.update(options)
    environ["PATH"] = f"{environment / 'bin'}{os.pathsep}{environ['PATH']}"
    environ.setdefault("MAKEFLAGS", f"-j{len(os.sched_getaffinity(0))}")

    pip = [python, "-m", "pip", "--no-input", "--no-cache-dir"]
    run_logged(
        pip
        + ["download", "--no-deps", "--no-build-isolation", "--no-binary", "horovod", "--dest", str(folder)]
        + [f"horovod=={HOROVOD_VERSION}"],
        log,
        environ,
    )
    unpack(folder / f"horovod-{HOROVOD_VERSION}.tar.gz", folder)
    source = folder / f"horovod-{HOROVOD_VERSION}"
    apply_patches(source, choose_patches("HOROVOD_GPU_OPERATIONS" in options))
    wheels = folder / "wheels"
    run_logged(
        pip + ["wheel", "--verbose", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(source)],
        log,
        environ,
    )
    return wheels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps built wheels")
    arguments = parser.parse_args()
    options = choose_options(os.environ)
    mpi_version, torch_version = mpi_library_version(), version("torch")
    try:
        print(
            find_or_build(
                arguments.cache,
                build_key(mpi_version, torch_version, options),
                lambda folder, log: build(folder, log, options),
                f"torch {torch_version}\n{mpi_version}\n{options}\n",
            )
        )
    except BuildError as error:
        print(f"build_horovod.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
