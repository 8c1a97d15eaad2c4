"""Looks at the machine and the installed stack: what is there, what is wrong, and how to mend it.

The checks are functions of what was found, so they can be tested without MPI; `collect` does the finding.
Nothing heavy is imported at the top, and a package that is missing or broken is a finding, not a traceback.
"""
from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Mapping, Optional, Sequence

from glpilot.app.runtime.launcher import promised_size

# What the program cannot run without: the name to import, and the name to install.
PACKAGES = {
    "torch": "torch",
    "dgl": "dgl",
    "mpi4py": "mpi4py",
    "horovod.torch": "horovod",
    "h5py": "h5py",
    "numba": "numba",
    "glpilot.app": "glpilot",
}
THREAD_LEVELS = ("MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE")
# The graph's structure and the rows of a host's ranks lie in shared memory; a container's default is 64 MiB.
MIN_SHARED_MEMORY_BYTES = 512 << 20
SETUP = "run: bash jobs/setup.sh"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, and how to mend it."""

    problem: str
    remedy: str


@dataclass
class Report:
    """One rank's view. `facts` are printed in order; plain values only, since reports travel between ranks."""

    host: str
    facts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


# --- checks -----------------------------------------------------------------------------------------------------


def check_python(version: tuple[int, int]) -> list[Finding]:
    if (3, 9) <= version <= (3, 11):
        return []
    return [Finding(f"Python {version[0]}.{version[1]}: expected 3.9 to 3.11", f"GLPILOT_PYTHON=PATH, and {SETUP}")]


def check_packages(errors: Mapping[str, str]) -> list[Finding]:
    """`errors`: package → why it could not be imported."""
    return [Finding(f"{package} cannot be imported ({why})", SETUP) for package, why in errors.items()]


def check_pins(requirements: Sequence[str], installed: Mapping[str, Optional[str]]) -> list[Finding]:
    """The versions that the package was tested with; `requirements` as in the package's metadata."""
    findings = []
    for text in requirements:
        pinned = re.match(r"([\w.-]+)\s*==\s*([\w.]+)$", text)
        if not pinned or installed.get(pinned[1]) is None:
            continue
        found = installed[pinned[1]].partition("+")[0]  # type: ignore[union-attr]
        if found != pinned[2]:
            findings.append(Finding(f"{pinned[1]} {found}: expected the pinned {pinned[2]}", SETUP))
    return findings


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


def check_mpirun(path: Optional[str], mpirun_version: str, library_version: str) -> list[Finding]:
    """Does the mpirun on PATH belong to the MPI library?"""
    remedy = "source .venv/bin/activate, or put .venv/bin (or a system MPI's bin) first on PATH"
    if path is None:
        return [Finding("no mpirun on PATH", remedy)]
    launcher, library = mpi_flavour(mpirun_version), mpi_flavour(library_version)
    if launcher is None or library is None or launcher == library:
        return []
    return [Finding(f"mpirun on PATH ({path}) is of {' '.join(launcher)}, the library is {' '.join(library)}", remedy)]


def check_shared_memory(total_bytes: int, free_bytes: int) -> list[Finding]:
    if free_bytes >= MIN_SHARED_MEMORY_BYTES:
        return []
    if total_bytes < MIN_SHARED_MEMORY_BYTES:
        remedy = "as root: mount -o remount,size=50% /dev/shm; in a container: --shm-size=8g"
    else:
        remedy = "remove what ended programs have left in /dev/shm"
    return [Finding(f"/dev/shm has {show_bytes(free_bytes)} free: graphs and rows are shared there", remedy)]


def check_gpu(num_devices: int, cuda_available: bool) -> list[Finding]:
    """`num_devices`: GPUs that the operating system shows."""
    if num_devices == 0 or cuda_available:
        return []
    return [
        Finding(
            f"the system shows {num_devices} GPU(s), and torch can use none",
            "check nvidia-smi, and CUDA_VISIBLE_DEVICES; the driver must support CUDA 12.1",
        )
    ]


def check_compiler(path: Optional[str], horovod_installed: bool) -> list[Finding]:
    """Only building Horovod needs one."""
    if path is not None or horovod_installed:
        return []
    return [Finding("no C++ compiler, and Horovod is still to be built", f"apt install g++, then {SETUP}")]


def check_same_versions(reports: Sequence[Report]) -> list[Finding]:
    """Ranks that run other versions than rank 0 does."""
    names = [*PACKAGES.values(), "python"]
    return [
        Finding(
            f"{name} {report.facts.get(name)} on {report.host}, {reports[0].facts.get(name)} on {reports[0].host}",
            f"on {report.host}: {SETUP}",
        )
        for report in {report.host: report for report in reports}.values()
        for name in names
        if report.facts.get(name) != reports[0].facts.get(name)
    ]


# --- what is there ------------------------------------------------------------------------------------------------


def mpi_flavour(text: str) -> Optional[tuple[str, str]]:
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


def show_bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "TiB"
    return f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"


def output_of(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def installed_version(package: str) -> Optional[str]:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def collect_packages(report: Report) -> None:
    os.environ.setdefault("DGLBACKEND", "pytorch")  # without it DGL writes a file into the home folder
    report.facts["python"] = platform.python_version()
    report.findings += check_python(sys.version_info[:2])
    errors = {}
    for module, package in PACKAGES.items():
        version = installed_version(package)
        report.facts[package] = version or "missing"
        try:
            import_module(module)
        except Exception as error:  # a library that does not fit raises whatever it likes
            reason = str(error).strip().splitlines() or [""]
            errors[package] = f"{type(error).__name__}: {reason[0]}"
    report.findings += check_packages(errors)
    if installed_version("glpilot"):
        versions = {package: installed_version(package) for package in PACKAGES.values()}
        report.findings += check_pins(metadata.requires("glpilot") or [], versions)


def collect_mpi(report: Report, environ: Mapping[str, str]) -> None:
    """Collective over MPI_COMM_WORLD if Horovod and mpi4py are there."""
    try:
        MPI = import_module("mpi4py.MPI")
    except Exception as error:
        report.facts["MPI library"] = "none"
        reason = str(error).strip().splitlines() or [""]
        report.findings.append(Finding(f"mpi4py finds no MPI library ({reason[0]})", SETUP))
        return
    library = MPI.Get_library_version().strip("\0 \n")
    flavour = mpi_flavour(library)
    report.facts["MPI library"] = " ".join(flavour) if flavour else library.splitlines()[0]
    report.facts["MPI loaded from"] = ", ".join(loaded_mpi_libraries()) or "unknown"
    report.facts["MPI thread level"] = THREAD_LEVELS[MPI.Query_thread()]
    report.findings += check_mpi_version(library) + check_thread_level(MPI.Query_thread())
    report.findings += check_world_size(MPI.COMM_WORLD.Get_size(), environ)

    path = shutil.which("mpirun")
    mpirun_version = output_of([path, "--version"]) if path else ""
    launcher = mpi_flavour(mpirun_version)
    report.facts["mpirun"] = f"{path} ({' '.join(launcher)})" if path and launcher else str(path)
    report.findings += check_mpirun(path, mpirun_version, library)


def collect_horovod(report: Report) -> None:
    """Collective over MPI_COMM_WORLD. Leaves Horovod as it was, running or not: it can be started only once."""
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is None:
        return  # reported already
    hvd = sys.modules.get("horovod.torch")
    if hvd is not None:
        report.findings += check_same_mpi(loaded_mpi_libraries()) + check_horovod_build(hvd.mpi_built())
        built = {"MPI": hvd.mpi_built(), "NCCL": hvd.nccl_built(), "Gloo": hvd.gloo_built(), "CUDA": hvd.cuda_built()}
        report.facts["Horovod operations"] = ", ".join(name for name, is_built in built.items() if is_built) or "none"
    can_start = hvd is not None and hvd.mpi_built() and not check_thread_level(MPI.Query_thread())
    if not MPI.COMM_WORLD.allreduce(can_start, op=MPI.LAND):
        return  # starting Horovod waits for all ranks
    was_running = hvd.is_initialized()
    if not was_running:
        hvd.init()
    report.findings += check_horovod_world(hvd.size(), MPI.COMM_WORLD.Get_size())
    if not was_running:
        hvd.shutdown()


def collect_machine(report: Report) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    report.facts["CPU cores"] = f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}"
    report.facts["memory"] = show_bytes(memory)
    if os.path.isdir("/dev/shm"):
        usage = shutil.disk_usage("/dev/shm")
        report.facts["/dev/shm"] = f"{show_bytes(usage.total)}, {show_bytes(usage.free)} free"
        report.findings += check_shared_memory(usage.total, usage.free)
    else:
        report.findings += check_shared_memory(0, 0)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    report.facts["locked memory"] = "unlimited" if locked == resource.RLIM_INFINITY else show_bytes(locked)
    compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
    report.facts["C++ compiler"] = compiler or "none (only building Horovod needs one)"
    report.findings += check_compiler(compiler, installed_version("horovod") is not None)


def collect_gpus(report: Report) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    devices = [name for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name)]
    available = torch.cuda.is_available()
    report.findings += check_gpu(len(devices), available)
    report.facts["GPUs"] = "none"
    if available:
        properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        report.facts["GPUs"] = ", ".join(f"{gpu.name} ({show_bytes(gpu.total_memory)})" for gpu in properties)
        if "NCCL" not in report.facts.get("Horovod operations", "NCCL"):
            report.facts["GPUs"] += "; without NCCL, Horovod copies through host memory"


def collect() -> Report:
    """Collective over MPI_COMM_WORLD where there is one: this rank's report."""
    report = Report(socket.gethostname())
    collect_packages(report)
    collect_mpi(report, os.environ)
    collect_horovod(report)
    collect_machine(report)
    collect_gpus(report)
    return report


def show_ranks_per_host(hosts: Sequence[str]) -> str:
    """`hosts`: by rank."""
    return ", ".join(f"{hosts.count(host)} on {host}" for host in dict.fromkeys(hosts))


def render(reports: Sequence[Report]) -> tuple[list[str], int]:
    """The lines to print, and the number of findings. `reports`: by rank; the facts of rank 0 stand for all."""
    width = max(map(len, reports[0].facts), default=0)
    lines = [f"{name:<{width}}  {value}" for name, value in reports[0].facts.items()]
    lines.append(f"{'ranks':<{width}}  {show_ranks_per_host([report.host for report in reports])}")

    hosts_of: dict[Finding, list[str]] = {}
    for report in reports:
        for finding in report.findings:
            hosts_of.setdefault(finding, []).append(report.host)
    for finding in check_same_versions(reports):
        hosts_of.setdefault(finding, [])
    one_host = len({report.host for report in reports}) == 1
    lines.append("")
    for finding, hosts in hosts_of.items():
        where = "" if one_host or not hosts else f" (on {', '.join(dict.fromkeys(hosts))})"
        lines.append(f"wrong: {finding.problem}{where}; mend: {finding.remedy}")
    lines.append(f"{len(hosts_of)} thing(s) wrong" if hosts_of else "nothing wrong")
    return lines, len(hosts_of)
