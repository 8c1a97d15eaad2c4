"""summary.json and the table at the end of a run: what it reached, and what it cost."""
from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np

from glpilot.app.clock import STAGES
from glpilot.app.comm import Communicator
from glpilot.app.dataset import Dataset
from glpilot.app.trainer import Trainer
from glpilot.data.hdf5 import replace_atomically

_COUNTERS = ("steps", "input_rows", "owned_rows", "fetched_rows", "fetch_bytes", "sparse_sync_bytes", "dense_sync_bytes")


def summarise(
    communicator: Communicator, dataset: Dataset, trainer: Trainer, epoch_seconds: list[float], steps_per_epoch: int,
    metrics: dict[str, float],
) -> dict:
    """Collective: the content of summary.json, the same on every rank.

    Stage seconds are means per epoch and rank, rows and bytes means per step and rank, of this start of the run.
    """
    world = communicator.world
    counters = dict(zip(_COUNTERS, _mean(world, [trainer.counters[name] for name in _COUNTERS])))
    seconds = dict(zip(STAGES, _mean(world, [trainer.clock.seconds[stage] for stage in STAGES])))
    num_steps = max(1.0, counters["steps"])
    per_step = {name: counters[name] / num_steps for name in _COUNTERS}
    peak_kib = max(world.allgather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    return {
        "world_size": communicator.size,
        "hosts": communicator.num_hosts,
        "parts": dataset.book.num_parts,
        "epochs": len(epoch_seconds),
        "steps_per_epoch": steps_per_epoch,
        "val_accuracy": None,
        "test_accuracy": None,
        **metrics,
        "epoch_seconds": epoch_seconds,
        "stage_seconds": {stage: seconds[stage] / num_steps * steps_per_epoch for stage in STAGES},
        "rows_per_step": {
            "input": per_step["input_rows"], "hot": 0.0, "owned": per_step["owned_rows"], "buffered": 0.0,
            "fetched": per_step["fetched_rows"],
        },
        "bytes_per_step": {
            "fetch": per_step["fetch_bytes"], "sparse_sync": per_step["sparse_sync_bytes"],
            "dense_sync": per_step["dense_sync_bytes"],
        },
        "staleness": {"max_steps": 0, "mean_steps": 0.0, "max_missed_updates": 0},
        "peak_memory_bytes": peak_kib * 1024,
    }


def write_summary(run: Path, summary: dict) -> None:
    with replace_atomically(Path(run) / "summary.json") as temporary:
        temporary.write_text(json.dumps(summary, indent=2) + "\n")


def format_table(summary: dict) -> str:
    """The summary as lines for people."""
    seconds = summary["epoch_seconds"]
    lines = [
        ("ranks on hosts", f"{summary['world_size']} on {summary['hosts']}"),
        ("epochs × steps", f"{summary['epochs']} × {summary['steps_per_epoch']}"),
    ]
    if seconds:
        lines.append(("seconds per epoch", f"{np.median(seconds):.3f} (median)"))
    for name in ("accuracy", "micro_f1", "macro_f1"):
        values = [f"{split} {summary[f'{split}_{name}']:.4f}" for split in ("val", "test")
                  if summary.get(f"{split}_{name}") is not None]
        if values:
            lines.append((name.replace("_", "-"), ", ".join(values)))
    total = sum(summary["stage_seconds"].values()) or 1.0
    stages = [f"{stage} {value / total:.0%}" for stage, value in summary["stage_seconds"].items() if value / total > 0.005]
    rows = summary["rows_per_step"]
    lines += [
        ("time by stage", ", ".join(stages)),
        ("rows per step", f"{rows['input']:,.0f} read: {rows['owned']:,.0f} owned, {rows['fetched']:,.0f} fetched"),
        ("MB per step", ", ".join(f"{name} {value / 1e6:.2f}" for name, value in summary["bytes_per_step"].items())),
        ("peak memory", f"{summary['peak_memory_bytes'] / 2**20:,.0f} MiB (largest rank)"),
    ]
    return "\n".join(f"  {name:<18} {value}" for name, value in lines)


def _mean(world, values: list[float]) -> list[float]:
    total = np.empty(len(values))
    world.Allreduce(np.asarray(values, np.float64), total)
    return (total / world.Get_size()).tolist()
