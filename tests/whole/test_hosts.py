"""Ranks on several hosts, made of network namespaces, compute what ranks of one host compute."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from helpers.launch import CHECKOUT, LONGER_FLAGS, losses_of, run

CLUSTER = CHECKOUT / "jobs/cluster/local_cluster.sh"


def why_not() -> str:
    """Why there can be no hosts here; nothing if there can."""
    if os.geteuid() != 0:
        return "making hosts needs root"
    if not all(map(shutil.which, ("ip", "tc", "nsenter", "unshare"))):
        return "making hosts needs iproute2 and util-linux"
    if "MPICH" not in run("mpirun", "--version").stdout and "HYDRA" not in run("mpirun", "--version").stdout:
        return "the options of mpirun below are MPICH's"
    return ""


@pytest.fixture(scope="module")
def hosts():
    """Two hosts with links of 1 Gbit/s; hosts that were up already stay."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    were_up = bool(run("bash", CLUSTER, "bytes").stdout)
    brought_up = run("bash", CLUSTER, "up", 2, "1gbit")
    if brought_up.returncode != 0:
        pytest.skip(f"no hosts here: {brought_up.stderr.strip()}")
    yield "node1,node2"
    if not were_up:
        run("bash", CLUSTER, "down")


def run_on(hosts: str, num_ranks: int, *command) -> subprocess.CompletedProcess:
    ranks_per_host = num_ranks // (hosts.count(",") + 1)
    launcher = ("mpirun", "-launcher", "ssh", "-launcher-exec", CLUSTER.parent / "rsh", "-iface", "glpbr0")
    ranks = ("-bind-to", "none", "-hosts", hosts, "-ppn", ranks_per_host, "-np", num_ranks)
    return run(*launcher, *ranks, *command)


def sent_bytes() -> int:
    return sum(int(line.split()[1]) for line in run("bash", CLUSTER, "bytes").stdout.splitlines())


@pytest.fixture(scope="module")
def run_on_two_hosts(hosts, parts):
    """From a number of ranks and flags to the folder of a run of theirs on the two hosts."""

    @cache
    def run_folder(num_ranks: int, *flags: str) -> Path:
        folder = parts.parent / "-".join(["two-hosts", str(num_ranks), *flags])
        before = sent_bytes()
        done = run_on(hosts, num_ranks, "glpilot", "train", parts, *LONGER_FLAGS, *flags, "--run", folder)
        assert done.returncode == 0, done.stderr
        assert f"{num_ranks} on 2" in done.stdout
        assert sent_bytes() - before > 100_000  # it did cross the network
        return folder

    return run_folder


# With four ranks a two-sided fetch would add nothing: it does not ask who shares memory.
@pytest.mark.parametrize("num_ranks, flags", [(2, ()), (4, ()), (2, ("--embedding.fetch", "alltoall"))])
def test_two_hosts_give_the_losses_of_one(run_on_one_host, run_on_two_hosts, num_ranks, flags):
    expected = losses_of(run_on_one_host(num_ranks))
    losses = losses_of(run_on_two_hosts(num_ranks, "--preset", "synchronous", *flags))
    assert len(losses) == len(expected) >= 6
    np.testing.assert_allclose(losses[: len(expected) // 3], expected[: len(expected) // 3], rtol=1e-6)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)  # rounding grows from step to step


def test_doctor_counts_ranks_by_host(hosts):
    done = run_on(hosts, 2, "glpilot", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 on node1, 1 on node2" in done.stdout


@pytest.mark.parametrize("num_ranks", [2, 4])
def test_techniques_send_less_over_the_network(run_on_two_hosts, num_ranks):
    sent = {}
    for preset in ("synchronous", "glpilot"):
        summary = json.loads((run_on_two_hosts(num_ranks, "--preset", preset) / "summary.json").read_text())
        sent[preset] = summary["rows_per_step"]["fetched"], summary["gradients_per_step"]["sent"]
        assert summary["staleness"]["max_steps"] <= 64
    assert sent["glpilot"][0] < 0.6 * sent["synchronous"][0]
    assert sent["glpilot"][1] < 0.9 * sent["synchronous"][1]
