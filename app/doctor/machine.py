"""This machine: cores, memory that ranks share, memory that may be locked, and the compiler."""

from __future__ import annotations

import os
import resource
import shutil

from glpilot.app.doctor.packages import installed_version
from glpilot.app.doctor.report import SETUP, Finding, Report, show_bytes

# The graph's structure and the rows of a host's ranks lie in shared memory; a container's default is 64 MiB.
MIN_SHARED_MEMORY_BYTES = 512 << 20


def probe(report: Report) -> None:
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


def check_shared_memory(total_bytes: int, free_bytes: int) -> list[Finding]:
    if free_bytes >= MIN_SHARED_MEMORY_BYTES:
        return []
    if total_bytes < MIN_SHARED_MEMORY_BYTES:
        remedy = "as root: mount -o remount,size=50% /dev/shm; in a container: --shm-size=8g"
    else:
        remedy = "remove what ended programs have left in /dev/shm"
    return [Finding(f"/dev/shm has {show_bytes(free_bytes)} free: graphs and rows are shared there", remedy)]


def check_compiler(path: str | None, horovod_installed: bool) -> list[Finding]:
    """Only building Horovod needs one."""
    if path is not None or horovod_installed:
        return []
    return [Finding("no C++ compiler, and Horovod is still to be built", f"apt install g++, then {SETUP}")]
