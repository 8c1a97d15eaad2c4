"""summary.json and the table at the end of a run: what it reached, and what it cost."""

from __future__ import annotations

import json
import resource
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.copies.staleness import StalenessRecord
from glpilot.app.runtime.clock import STAGES
from glpilot.app.runtime.communicator import Communicator
from glpilot.data.hdf5 import replace_atomically

_ROWS = ("input", "hot", "owned", "near", "buffered", "fetched")
_GRADIENTS = ("far", "due", "sent")
_BYTES = ("fetch", "sparse_sync", "dense_sync")
_COUNTERS = (
    "steps",
    *(f"{kind}_rows" for kind in _ROWS),
    *(f"{kind}_gradients" for kind in _GRADIENTS),
    *(f"{kind}_bytes" for kind in _BYTES),
)


@dataclass(frozen=True)
class Cost:
    """What this start of a run took on one rank.

    Attributes:
        counters: rows, gradients, bytes and steps, by the names in _COUNTERS.
        stage_seconds: by stage.
        num_cached_rows: hot rows on every device.
        staleness: of the rows that copies gave.
    """

    counters: Counter[str]
    stage_seconds: dict[str, float]
    num_cached_rows: int = 0
    staleness: StalenessRecord = field(default_factory=StalenessRecord)


def summarise(
    communicator: Communicator,
    num_parts: int,
    epoch_seconds: list[float],
    steps_per_epoch: int,
    metrics: dict[str, float],
    cost: Cost,
) -> dict[str, Any]:
    """Collective: the content of summary.json, the same on every rank.

    Stage seconds are means per epoch and rank, rows and bytes means per step and rank, of this start of the run.
    """
    world = communicator.world
    counters = dict(zip(_COUNTERS, _mean(world, [cost.counters[name] for name in _COUNTERS])))
    seconds = dict(zip(STAGES, _mean(world, [cost.stage_seconds[stage] for stage in STAGES])))
    num_steps = max(1.0, counters["steps"])
    per_step = {name: counters[name] / num_steps for name in _COUNTERS}
    peak_kib = max(world.allgather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    return {
        "world_size": communicator.size,
        "hosts": communicator.num_hosts,
        "parts": num_parts,
        "epochs": len(epoch_seconds),
        "steps_per_epoch": steps_per_epoch,
        "val_accuracy": None,
        "test_accuracy": None,
        **metrics,
        "epoch_seconds": epoch_seconds,
        "stage_seconds": {stage: seconds[stage] / num_steps * steps_per_epoch for stage in STAGES},
        "rows_per_step": {kind: per_step[f"{kind}_rows"] for kind in _ROWS},
        "gradients_per_step": {kind: per_step[f"{kind}_gradients"] for kind in _GRADIENTS},
        "bytes_per_step": {kind: per_step[f"{kind}_bytes"] for kind in _BYTES},
        "cached_rows": cost.num_cached_rows,
        "staleness": describe_staleness(communicator, cost.staleness),
        "peak_memory_bytes": peak_kib * 1024,
    }


def describe_staleness(communicator: Communicator, record: StalenessRecord) -> dict[str, Any]:
    """Collective: how stale the rows were that all ranks took from copies, in this start of the run.

    Histograms count rows, in classes by powers of two.
    """
    steps, missed = record.steps.copy(), record.missed_updates.copy()
    for histogram in (steps, missed):
        communicator.world.Allreduce(MPI.IN_PLACE, histogram)
    values = np.arange(len(steps))
    return {
        "max_steps": int(np.flatnonzero(steps).max(initial=0)),
        "mean_steps": float((steps * values).sum() / max(1, steps.sum())),
        "max_missed_updates": int(np.flatnonzero(missed).max(initial=0)),
        "mean_missed_updates": float((missed * values).sum() / max(1, missed.sum())),
        "steps_histogram": by_powers_of_two(steps),
        "missed_updates_histogram": by_powers_of_two(missed),
    }


def by_powers_of_two(histogram: np.ndarray) -> dict[str, int]:
    """Counts of 0, 1, 2, 3-4, 5-8, … up to 1024, which stands for all from there on; empty classes are left out."""
    edges = [0, 1, 2, *(2**power + 1 for power in range(1, 11))]
    classes = {}
    for first, stop in zip(edges, [*edges[1:], len(histogram)]):
        count = int(histogram[first:stop].sum())
        if count:
            classes[str(first) if stop == first + 1 else f"{first}-{stop - 1}"] = count
    return classes


def write_summary(run: Path, summary: dict[str, Any]) -> None:
    with replace_atomically(Path(run) / "summary.json") as temporary:
        temporary.write_text(json.dumps(summary, indent=2) + "\n")


def format_table(summary: dict[str, Any]) -> str:
    """The summary as lines for people."""
    seconds = summary["epoch_seconds"]
    lines = [
        ("ranks on hosts", f"{summary['world_size']} on {summary['hosts']}"),
        ("epochs × steps", f"{summary['epochs']} × {summary['steps_per_epoch']}"),
    ]
    if seconds:
        lines.append(("seconds per epoch", f"{np.median(seconds):.3f} (median)"))
    for name in ("accuracy", "micro_f1", "macro_f1"):
        values = [
            f"{split} {summary[f'{split}_{name}']:.4f}"
            for split in ("val", "test")
            if summary.get(f"{split}_{name}") is not None
        ]
        if values:
            lines.append((name.replace("_", "-"), ", ".join(values)))
    total = sum(summary["stage_seconds"].values()) or 1.0
    stages = [
        f"{stage} {value / total:.0%}" for stage, value in summary["stage_seconds"].items() if value / total > 0.005
    ]
    rows, gradients, staleness = (summary[key] for key in ("rows_per_step", "gradients_per_step", "staleness"))
    sources = [f"{rows[kind]:,.0f} {kind}" for kind in _ROWS[1:] if rows[kind]]
    lines += [
        ("time by stage", ", ".join(stages)),
        ("rows per step", f"{rows['input']:,.0f} read{': ' if sources else ''}{', '.join(sources)}"),
        ("MB per step", ", ".join(f"{name} {value / 1e6:.2f}" for name, value in summary["bytes_per_step"].items())),
    ]
    if gradients["far"]:
        lines.append(("gradients per step", f"{gradients['far']:,.0f} for other hosts, {gradients['sent']:,.0f} sent"))
    if rows["buffered"]:
        lines.append(
            (
                "staleness",
                f"{staleness['mean_steps']:.1f} steps (at most {staleness['max_steps']}), "
                f"{staleness['mean_missed_updates']:.1f} updates missed (at most {staleness['max_missed_updates']})",
            )
        )
    lines += [
        ("peak memory", f"{summary['peak_memory_bytes'] / 2**20:,.0f} MiB (largest rank)"),
    ]
    return "\n".join(f"  {name:<18} {value}" for name, value in lines)


def _mean(world, values: list[float]) -> list[float]:
    total = np.empty(len(values))
    world.Allreduce(np.asarray(values, np.float64), total)
    return (total / world.Get_size()).tolist()
