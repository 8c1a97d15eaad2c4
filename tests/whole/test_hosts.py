"""Ranks on several hosts, made of network namespaces, compute what ranks of one host compute."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from helpers.launch import CHECKOUT, TRAIN_FLAGS, losses_of, make_parts, run, run_ranks

SYNCHRONOUS = (*TRAIN_FLAGS, "--preset", "synchronous")
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
    return run(
        "mpirun",
        "-launcher",
        "ssh",
        "-launcher-exec",
        CLUSTER.parent / "rsh",
        "-iface",
        "glpbr0",
        "-bind-to",
        "none",
        "-hosts",
        hosts,
        "-ppn",
        ranks_per_host,
        "-np",
        num_ranks,
        *command,
    )


def sent_bytes() -> int:
    return sum(int(line.split()[1]) for line in run("bash", CLUSTER, "bytes").stdout.splitlines())


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return make_parts(tmp_path_factory.mktemp("hosts"))


@pytest.fixture(scope="module", params=[2, 4])
def losses_of_one_host(request, parts):
    """The number of ranks, and their losses on one host."""
    folder = parts.parent / f"one-{request.param}"
    done = run_ranks(request.param, "glpilot", "train", parts, *SYNCHRONOUS, "--run", folder)
    assert done.returncode == 0, done.stderr
    assert f"{request.param} on 1" in done.stdout
    return request.param, losses_of(folder)


@pytest.mark.parametrize("fetch", ["rma", "alltoall"])
def test_two_hosts_give_the_losses_of_one(hosts, parts, losses_of_one_host, tmp_path, fetch):
    num_ranks, losses = losses_of_one_host
    if (num_ranks, fetch) == (4, "alltoall"):
        pytest.skip("adds nothing: the two-sided fetch does not ask who shares memory")
    before = sent_bytes()
    command = ["glpilot", "train", parts, *SYNCHRONOUS, "--embedding.fetch", fetch, "--run", tmp_path / "run"]
    done = run_on(hosts, num_ranks, *command)
    assert done.returncode == 0, done.stderr
    assert f"{num_ranks} on 2" in done.stdout
    assert sent_bytes() - before > 100_000  # it did cross the network
    np.testing.assert_allclose(losses_of(tmp_path / "run"), losses, rtol=1e-6)


def test_doctor_counts_ranks_by_host(hosts):
    done = run_on(hosts, 2, "glpilot", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 on node1, 1 on node2" in done.stdout


@pytest.mark.parametrize("num_ranks", [2, 4])
def test_techniques_send_less_over_the_network(hosts, parts, tmp_path, num_ranks):
    sent = {}
    for preset in ("synchronous", "glpilot"):
        folder = tmp_path / preset
        flags = (*TRAIN_FLAGS, "--train.epochs", 6, "--train.eval_epochs", 0, "--preset", preset)
        done = run_on(hosts, num_ranks, "glpilot", "train", parts, *flags, "--run", folder)
        assert done.returncode == 0, done.stderr
        summary = json.loads((folder / "summary.json").read_text())
        sent[preset] = summary["rows_per_step"]["fetched"], summary["gradients_per_step"]["sent"]
        assert summary["staleness"]["max_steps"] <= 64
    assert sent["glpilot"][0] < 0.6 * sent["synchronous"][0]
    assert sent["glpilot"][1] < 0.9 * sent["synchronous"][1]
