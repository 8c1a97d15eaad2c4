"""Run GLPilot and DGL's distributed trainer in turn on the hosts of local_cluster.sh, and compare their epochs.

Started by compare.sh. Everything is the same for both: the graph, the parts, the model, its optimizers and learning
rates, the fanouts, the seeds per rank and step, one thread a rank. The first epoch of each run is left out.
"""
from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "cluster" / "local_cluster.sh"
SUBNET = "10.77.0"  # as local_cluster.sh has it


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bash jobs/bench/compare.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=2, help="hosts, one rank on each (default: 2)")
    parser.add_argument("--rate", default="1gbit", help="of each host's link, as tc writes it, or none (default: 1gbit)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each program, taking turns (default: 2)")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of a run (default: 4)")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--degree", type=float, default=35, help="so nodes × degree / 2 undirected edges (default: 35)")
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--fanouts", default="10,5", help="input layer first")
    parser.add_argument("--batch-size", type=int, default=1000, help="seeds per rank and step")
    parser.add_argument("--folder", type=Path, default=Path("scratch/bench"), help="for graph, parts, logs and result.json")
    return parser.parse_args()


def call(*command, **options) -> str:
    """Run a command; its stdout. Its stderr and exit code end the comparison if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare(arguments: argparse.Namespace, folder: Path) -> None:
    """The graph, and the same parts in both programs' formats."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    call("glpilot", "generate", "--nodes", arguments.nodes, "--degree", arguments.degree, "--classes", arguments.classes,
         "--seed", 1, folder / "graph.h5")
    print(call("glpilot", "partition", folder / "graph.h5", "--parts", arguments.hosts, folder / "parts"))
    call(sys.executable, HERE / "dgl_partition.py", folder / "graph.h5", folder / "parts", folder / "dgl")
    lines = [f"{SUBNET}.{index} 30050\n" for index in range(1, arguments.hosts + 1)]
    (folder / "hosts.txt").write_text("".join(lines))


def run_glpilot(arguments: argparse.Namespace, folder: Path) -> tuple[list[float], float]:
    """Epoch seconds without the first, and the test accuracy."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    hosts = ",".join(f"node{index}" for index in range(1, arguments.hosts + 1))
    output = call(
        "mpirun", "-launcher", "ssh", "-launcher-exec", CLUSTER.parent / "rsh", "-iface", "glpbr0", "-bind-to", "none",
        "-hosts", hosts, "-np", arguments.hosts, "glpilot", "train", folder / "parts", "--run", run,
        "--sampler.fanouts", arguments.fanouts, "--sampler.batch_size", arguments.batch_size,
        "--embedding.dim", arguments.dim, "--model.dropout", 0, "--train.eval_epochs", 0,
        "--train.epochs", arguments.epochs,
    )
    print(output[output.index("  ranks on hosts") :])
    summary = json.loads((run / "summary.json").read_text())
    return summary["epoch_seconds"][1:], summary["test_accuracy"]


def run_dgl(arguments: argparse.Namespace, folder: Path) -> tuple[list[float], float]:
    """Epoch seconds without the first, and the test accuracy. A server and a trainer on every host."""
    common = {
        "DGL_DIST_MODE": "distributed", "DGL_NUM_SAMPLER": 0, "DGL_NUM_SERVER": 1, "DGL_NUM_CLIENT": arguments.hosts,
        "DGL_GROUP_ID": 0, "DGL_CONF_PATH": folder / "dgl/bench.json", "DGL_IP_CONFIG": folder / "hosts.txt",
        "DGL_GRAPH_FORMAT": "csc", "OMP_NUM_THREADS": 1, "DGLBACKEND": "pytorch",
    }
    trainer = [
        sys.executable, HERE / "dgl_trainer.py", "--ip_config", folder / "hosts.txt", "--part_config", folder / "dgl/bench.json",
        "--classes", arguments.classes, "--epochs", arguments.epochs, "--batch", arguments.batch_size,
        "--dim", arguments.dim, "--fanouts", arguments.fanouts,
    ]
    processes = []
    for index in range(arguments.hosts):
        server = {**common, "DGL_ROLE": "server", "DGL_SERVER_ID": index}
        client = {**common, "DGL_ROLE": "client", "MASTER_ADDR": f"{SUBNET}.1", "MASTER_PORT": 29501,
                  "GLOO_SOCKET_IFNAME": "eth0", "RANK": index, "WORLD_SIZE": arguments.hosts, "LOCAL_RANK": 0}
        for role, variables in (("server", server), ("trainer", client)):
            words = [f"cd {folder} &&", "env", *(f"{name}={value}" for name, value in variables.items()), *trainer]
            log = open(folder / f"dgl-{role}{index}.log", "w")
            command = ["bash", str(CLUSTER), "on", f"node{index + 1}", *map(str, words)]
            processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))
    try:
        for process in processes:
            process.wait(timeout=1800)
    finally:
        for process in processes:
            process.kill()
    log = (folder / "dgl-trainer0.log").read_text()
    seconds = [float(text) for text in re.findall(r"^epoch \d+ ([\d.]+)s", log, re.MULTILINE)]
    accuracy = re.search(r"^rank 0 test accuracy ([\d.]+)", log, re.MULTILINE)
    if len(seconds) != arguments.epochs or accuracy is None:
        sys.exit(f"compare: DGL's trainer failed, see {folder}/dgl-*.log:\n{log[-2000:]}")
    print("\n".join(line for line in log.splitlines() if line.startswith("epoch")))
    return seconds[1:], float(accuracy[1])


def main() -> None:
    arguments = parse_arguments()
    folder = arguments.folder.resolve()
    call("bash", CLUSTER, "up", arguments.hosts, arguments.rate)
    try:
        prepare(arguments, folder)
        programs = {"dgl": run_dgl, "glpilot": run_glpilot}
        seconds: dict[str, list[float]] = {name: [] for name in programs}
        accuracies = {}
        for number in range(1, arguments.rounds + 1):
            for name, run in programs.items():
                print(f"--- round {number}: {name}", flush=True)
                epochs, accuracies[name] = run(arguments, folder)
                seconds[name] += epochs
    finally:
        call("bash", CLUSTER, "down")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        print(f"{name:<8} {medians[name]:7.2f} s per epoch ({min(values):.2f}–{max(values):.2f}, {len(values)} epochs)  "
              f"ratio to dgl {medians[name] / medians['dgl']:.3f}  test accuracy {accuracies[name]:.4f}")
    options = {name: str(value) for name, value in vars(arguments).items()}
    result = {"options": options, "epoch_seconds": seconds, "test_accuracy": accuracies}
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
