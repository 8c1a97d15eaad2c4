"""What the doctor writes down about a machine: facts and findings, each of them a line of text."""

from __future__ import annotations

from dataclasses import dataclass, field

# The remedy of most findings.
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


def show_bytes(count: float) -> str:
    """A size for people to read, in powers of 1024."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        del units[0]
    unit = units[0]
    return f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"


def first_line(error: Exception) -> str:
    """What an error says, as far as it fits a finding."""
    lines = str(error).strip().splitlines() or [""]
    return lines[0]
