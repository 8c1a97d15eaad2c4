"""What the comparisons share: hosts of local_cluster.sh, a graph in parts, and runs of GLPilot and DGL on them.

Everything is the same for all runs: the graph, the parts, the model, its optimizers and learning rates, the fanouts,
the seeds per rank and step, one thread a rank.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "cluster" / "local_cluster.sh"
SUBNET = "10.77.0"  # as local_cluster.sh has it
LIMIT_SECONDS = 1800  # of a run


@dataclass
class Result:
    """One run.

    Attributes:
        epoch_seconds: without the first epoch, which loads kernels and fills buffers.
        network_megabytes: what the hosts' links sent per epoch, without evaluation; None where it was not counted.
        summary: the run's summary.json; empty for DGL.
    """

    epoch_seconds: list[float]
    test_accuracy: float
    network_megabytes: float | None
    summary: dict


def make_parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"bash jobs/bench/{name}", description=description)
    parser.add_argument("--hosts", type=int, default=2, help="hosts, one rank on each (default: 2)")
    parser.add_argument(
        "--rate", default="1gbit", help="of each host's link, as tc writes it, or none (default: 1gbit)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind, taking turns (default: 2)")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of a run (default: 4)")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--degree", type=float, default=35, help="so nodes × degree / 2 undirected edges (default: 35)")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--optimizer", choices=["adam", "adagrad"], default="adam", help="of the rows (default: adam)")
    parser.add_argument("--fanouts", default="10,5", help="input layer first")
    parser.add_argument("--batch-size", type=int, default=1000, help="seeds per rank and step")
    parser.add_argument("--folder", type=Path, default=Path("scratch/bench"), help="for graph, parts, logs and results")
    return parser


def call(*command, **options) -> str:
    """Run a command; its stdout. Its stderr and exit code end the comparison if it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_SECONDS, **options
    )
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def cluster(arguments: argparse.Namespace) -> Iterator[None]:
    """The hosts, and the graph in as many parts."""
    call("bash", CLUSTER, "up", arguments.hosts, arguments.rate)
    try:
        arguments.folder = arguments.folder.resolve()
        _prepare(arguments)
        yield
    finally:
        call("bash", CLUSTER, "down")


def _prepare(arguments: argparse.Namespace) -> None:
    folder = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    call(
        "glpilot",
        "generate",
        "--nodes",
        arguments.nodes,
        "--degree",
        arguments.degree,
        "--classes",
        arguments.classes,
        "--seed",
        1,
        folder / "graph.h5",
    )
    print(call("glpilot", "partition", folder / "graph.h5", "--parts", arguments.hosts, folder / "parts"))


def run_glpilot(arguments: argparse.Namespace, flags: str) -> Result:
    """Train with these flags on top of the common settings."""
    run = arguments.folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    hosts = ",".join(f"node{index}" for index in range(1, arguments.hosts + 1))
    call(
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
        "-np",
        arguments.hosts,
        "glpilot",
        "train",
        arguments.folder / "parts",
        "--run",
        run,
        "--sampler.fanouts",
        arguments.fanouts,
        "--sampler.batch_size",
        arguments.batch_size,
        "--embedding.dim",
        arguments.dim,
        "--embedding.optimizer",
        arguments.optimizer,
        "--model.dropout",
        0,
        "--train.eval_epochs",
        0,
        "--train.epochs",
        arguments.epochs,
        *flags.split(),
    )
    summary = json.loads((run / "summary.json").read_text())
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    sent = [record["network_bytes"] / 1e6 for record in records if "network_bytes" in record]
    return Result(summary["epoch_seconds"][1:], summary["test_accuracy"], statistics.median(sent[1:]), summary)


def prepare_dgl(arguments: argparse.Namespace) -> None:
    """The same parts in DGL's format."""
    folder = arguments.folder
    call(sys.executable, HERE / "dgl_partition.py", folder / "graph.h5", folder / "parts", folder / "dgl")
    lines = [f"{SUBNET}.{index} 30050\n" for index in range(1, arguments.hosts + 1)]
    (folder / "hosts.txt").write_text("".join(lines))


def run_dgl(arguments: argparse.Namespace) -> Result:
    """DGL's own distributed trainer: a server and a trainer on every host."""
    folder = arguments.folder
    common = {
        "DGL_DIST_MODE": "distributed",
        "DGL_NUM_SAMPLER": 0,
        "DGL_NUM_SERVER": 1,
        "DGL_NUM_CLIENT": arguments.hosts,
        "DGL_GROUP_ID": 0,
        "DGL_CONF_PATH": folder / "dgl/bench.json",
        "DGL_IP_CONFIG": folder / "hosts.txt",
        "DGL_GRAPH_FORMAT": "csc",
        "OMP_NUM_THREADS": 1,
        "DGLBACKEND": "pytorch",
    }
    trainer = [
        sys.executable,
        HERE / "dgl_trainer.py",
        "--ip_config",
        folder / "hosts.txt",
        "--part_config",
        folder / "dgl/bench.json",
        "--classes",
        arguments.classes,
        "--epochs",
        arguments.epochs,
        "--batch",
        arguments.batch_size,
        "--dim",
        arguments.dim,
        "--fanouts",
        arguments.fanouts,
        "--optimizer",
        arguments.optimizer,
    ]
    processes = []
    for index in range(arguments.hosts):
        server = {**common, "DGL_ROLE": "server", "DGL_SERVER_ID": index}
        client = {
            **common,
            "DGL_ROLE": "client",
            "MASTER_ADDR": f"{SUBNET}.1",
            "MASTER_PORT": 29501,
            "GLOO_SOCKET_IFNAME": "eth0",
            "RANK": index,
            "WORLD_SIZE": arguments.hosts,
            "LOCAL_RANK": 0,
        }
        for role, variables in (("server", server), ("trainer", client)):
            words = [f"cd {folder} &&", "env", *(f"{name}={value}" for name, value in variables.items()), *trainer]
            command = ["bash", str(CLUSTER), "on", f"node{index + 1}", *map(str, words)]
            with open(folder / f"dgl-{role}{index}.log", "w") as log:  # the process keeps it open
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            processes.append(process)
    try:
        for process in processes:
            process.wait(timeout=LIMIT_SECONDS)
    finally:
        for process in processes:
            process.kill()
    log = (folder / "dgl-trainer0.log").read_text()
    seconds = [float(text) for text in re.findall(r"^epoch \d+ ([\d.]+)s", log, re.MULTILINE)]
    accuracy = re.search(r"^rank 0 test accuracy ([\d.]+)", log, re.MULTILINE)
    if len(seconds) != arguments.epochs or accuracy is None:
        sys.exit(f"bench: DGL's trainer failed, see {folder}/dgl-*.log:\n{log[-2000:]}")
    return Result(seconds[1:], float(accuracy[1]), None, {})


def take_turns(arguments: argparse.Namespace, kinds: dict[str, str]) -> dict[str, list[Result]]:
    """Run every kind once a round; `kinds` maps names to GLPilot's flags, "dgl" stands for DGL's trainer."""
    if "dgl" in kinds:
        prepare_dgl(arguments)
    results: dict[str, list[Result]] = {name: [] for name in kinds}
    for number in range(1, arguments.rounds + 1):
        for name, flags in kinds.items():
            result = run_dgl(arguments) if name == "dgl" else run_glpilot(arguments, flags)
            results[name].append(result)
            print(f"round {number}: {name:<16} {statistics.median(result.epoch_seconds):.2f} s per epoch", flush=True)
    return results


def format_results(results: dict[str, list[Result]], base: str) -> str:
    """A table of medians over all epochs of all rounds; ratios are to the kind `base`."""
    seconds = {name: [value for result in runs for value in result.epoch_seconds] for name, runs in results.items()}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    lines = [
        f"{'':<16}{'s per epoch':>12}{'(smallest–largest)':>20}{'ratio':>7}{'MB on links':>13}{'rows fetched':>14}"
        f"{'gradients sent':>16}{'accuracy':>10}"
    ]
    for name, runs in results.items():
        last = runs[-1]
        spread = f"({min(seconds[name]):.2f}–{max(seconds[name]):.2f})"
        counts = [f"{'–':>13}", f"{'–':>14}", f"{'–':>16}"]
        if last.summary:
            counts = [
                f"{statistics.median(run.network_megabytes or 0 for run in runs):>13.0f}",
                f"{last.summary['rows_per_step']['fetched']:>14,.0f}",
                f"{last.summary['gradients_per_step']['sent']:>16,.0f}",
            ]
        lines.append(
            f"{name:<16}{medians[name]:>12.2f}{spread:>20}{medians[name] / medians[base]:>7.3f}"
            + "".join(counts)
            + f"{last.test_accuracy:>10.4f}"
        )
    lines.append("")
    for name, runs in results.items():
        if runs[-1].summary:
            stages, steps = runs[-1].summary["stage_seconds"], runs[-1].summary["steps_per_epoch"]
            shown = ", ".join(
                f"{stage} {value / steps * 1e3:.1f}" for stage, value in stages.items() if value / steps > 5e-4
            )
            lines.append(f"{name}: ms per step of the last run: {shown}")
    return "\n".join(lines)


def write_results(arguments: argparse.Namespace, results: dict[str, list[Result]]) -> None:
    options = {name: str(value) for name, value in vars(arguments).items()}
    content = {"options": options, "results": {name: [asdict(run) for run in runs] for name, runs in results.items()}}
    (arguments.folder / "result.json").write_text(json.dumps(content, indent=2) + "\n")
