"""Train on one graph under presets, bounds and seeds, and compare the accuracies.

Started by accuracy.sh.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_SECONDS = 1800  # of a run
MPI_SH = Path(__file__).parent.parent / "mpi.sh"


def parse() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(prog="bash jobs/bench/accuracy.sh", description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=Path, help="a graph file of glpilot import or generate")
    parser.add_argument("--ranks", type=int, default=4, help="each a host of its own (default: 4)")
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 3], help="train.seed of the runs (default: 1,2,3)")
    parser.add_argument("--presets", default="synchronous,glpilot", help="(default: synchronous,glpilot)")
    parser.add_argument(
        "--max-steps", type=numbers, default=[], metavar="N,N,…", help="rows of the table; -1: unbounded"
    )
    parser.add_argument("--max-missed", type=numbers, default=[], metavar="N,N,…", help="its columns; -1: unbounded")
    parser.add_argument(
        "--flags", default="", help='of every run, such as "--train.epochs 20 --aggregation.window_steps 16"'
    )
    arguments = parser.parse_args()
    if not arguments.graph.is_file():
        parser.error(f"{arguments.graph}: no such graph file")
    return arguments


def train(parts: Path, arguments: argparse.Namespace, seed: int, flags: str) -> dict:
    """One run's summary."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "bash",
            MPI_SH,
            arguments.ranks,
            "glpilot",
            "train",
            parts,
            "--run",
            f"{folder}/run",
            "--train.seed",
            seed,
            "--train.eval_epochs",
            0,
            *flags.split(),
            *arguments.flags.split(),
        ]
        environ = {**os.environ, "MPIR_CVAR_NUM_CLIQUES": str(arguments.ranks)}
        done = subprocess.run(
            [str(word) for word in command],
            env=environ,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
        )
        if done.returncode != 0:
            sys.exit(f"accuracy: {' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
        return json.loads(Path(folder, "run/summary.json").read_text())


def describe(summaries: list[dict]) -> str:
    """Mean test accuracy over the seeds, each of them, and what was fetched."""
    accuracies = [summary["test_accuracy"] for summary in summaries]
    fetched = statistics.mean(summary["rows_per_step"]["fetched"] for summary in summaries)
    each = ", ".join(f"{value:.4f}" for value in accuracies)
    return f"{statistics.mean(accuracies):.4f} ({each}), {fetched:,.0f} rows fetched a step and rank"


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder, "parts")
        subprocess.run(["glpilot", "partition", arguments.graph, "--parts", str(arguments.ranks), parts], check=True)
        for preset in filter(None, arguments.presets.split(",")):
            summaries = [train(parts, arguments, seed, f"--preset {preset}") for seed in arguments.seeds]
            print(f"{preset}: {describe(summaries)}", flush=True)
        for max_steps in arguments.max_steps:
            for max_missed in arguments.max_missed:
                flags = f"--staleness.max_steps {max_steps} --staleness.max_missed_updates {max_missed}"
                summaries = [train(parts, arguments, seed, flags) for seed in arguments.seeds]
                print(f"max_steps {max_steps}, max_missed_updates {max_missed}: {describe(summaries)}", flush=True)


if __name__ == "__main__":
    main()
