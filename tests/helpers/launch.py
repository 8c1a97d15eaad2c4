"""Start the program on several ranks from a test of one process, and clean its processes up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 90
# The console scripts and launchers of the environment that runs the tests; nothing of a launcher around us.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("PMI_", "OMPI_", "PMIX_"))},
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
}
TRAIN_FLAGS = (
    *("--sampler.fanouts", "4,3", "--sampler.batch_size", "50", "--train.epochs", "2", "--train.eval_epochs", "0"),
    *("--model.hidden", "8", "--embedding.dim", "8", "--run.device", "cpu"),
)
# Epochs enough for copies to be used again; the losses of the first few are compared.
LONGER_FLAGS = (*TRAIN_FLAGS, "--train.epochs", "6")


def run(*command, env=ENVIRONMENT) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )


def run_ranks(num_ranks: int, *command) -> subprocess.CompletedProcess:
    return run("bash", CHECKOUT / "jobs/mpi.sh", num_ranks, *command)


def make_parts(folder: Path, num_parts: int = 4) -> Path:
    """A generated graph of 600 nodes in parts."""
    graph, parts = folder / "graph.h5", folder / "parts"
    for command in (
        ["generate", "--nodes", 600, "--degree", 8, "--classes", 3, "--seed", 1, graph],
        ["partition", graph, "--parts", num_parts, parts],
    ):
        done = run("glpilot", *command)
        assert done.returncode == 0, done.stderr
    return parts


def losses_of(run_folder: Path) -> list[float]:
    records = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if "loss" in record]
