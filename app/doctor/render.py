"""Makes the lines that `glpilot doctor` prints out of the reports of all ranks."""

from __future__ import annotations

from collections.abc import Sequence

from glpilot.app.doctor.packages import check_same_versions
from glpilot.app.doctor.report import Finding, Report


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


def show_ranks_per_host(hosts: Sequence[str]) -> str:
    """`hosts`: by rank."""
    return ", ".join(f"{hosts.count(host)} on {host}" for host in dict.fromkeys(hosts))
