"""Python and the packages: are they there, can they be imported, and are they of the versions that were tested?"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata

from glpilot.app.doctor.report import SETUP, Finding, Report, first_line

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


def probe(report: Report) -> None:
    """Imports the packages; the later probes find them in sys.modules."""
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
            errors[package] = f"{type(error).__name__}: {first_line(error)}"
    report.findings += check_packages(errors)
    if installed_version("glpilot"):
        versions = {package: installed_version(package) for package in PACKAGES.values()}
        report.findings += check_pins(metadata.requires("glpilot") or [], versions)


def check_python(version: tuple[int, int]) -> list[Finding]:
    if (3, 9) <= version <= (3, 11):
        return []
    return [Finding(f"Python {version[0]}.{version[1]}: expected 3.9 to 3.11", f"GLPILOT_PYTHON=PATH, and {SETUP}")]


def check_packages(errors: Mapping[str, str]) -> list[Finding]:
    """`errors`: package → why it could not be imported."""
    return [Finding(f"{package} cannot be imported ({why})", SETUP) for package, why in errors.items()]


def check_pins(requirements: Sequence[str], installed: Mapping[str, str | None]) -> list[Finding]:
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


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
