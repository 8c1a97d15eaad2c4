"""What the hotness of rows says before training begins: a line, a plot, and the expected effect of each setting.

The observation that GLPilot rests on shows here: rare rows cause most of the loading and few of the updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from mpi4py import MPI

from glpilot.app.embedding.copies import traffic
from glpilot.app.embedding.copies.hotness import Hotness, share_curve
from glpilot.app.embedding.copies.staleness import max_ages
from glpilot.app.runtime.communicator import Communicator
from glpilot.data.hdf5 import replace_atomically

MAX_STEPS = (8, 32, 128, -1)
MAX_MISSED_UPDATES = (1, 4, 16, 64, -1)
WINDOW_STEPS = (1, 2, 4, 8, 16)
CACHE_SHARES = (0.001, 0.01, 0.1)


class HotnessReport:
    """Totals over all ranks.

    Attributes:
        accesses: float64 [num_nodes]: accesses per step, over all ranks.
        loads: float64 [num_nodes]: those of them that other hosts' rows are, without copies.
        updates: float64 [num_nodes]: updates per step.
        table: lines with the expected effect of settings.
    """

    def __init__(self, communicator: Communicator, hotness: Hotness, is_far: np.ndarray, layout: traffic.Layout):
        """Collective."""
        self.accesses = _sum(communicator, hotness.access_rates)
        self.loads = _sum(communicator, np.where(is_far, hotness.access_rates, 0))
        self.updates = hotness.update_rates.astype(np.float64)
        self.table = "\n".join(_expect(communicator, hotness, is_far, layout, self.accesses)) + "\n"

    def line(self, method: str) -> str:
        """The observation in numbers."""
        accesses, loads, updates = (
            share_curve(amounts, self.updates) for amounts in (self.accesses, self.loads, self.updates)
        )
        rare = f", {1 - loads[50]:.0%} of the loads from other hosts" if self.loads.any() else ""
        return (
            f"hotness (by {method}): the most updated 10% of the rows have {updates[10]:.0%} of the updates and "
            f"{accesses[10]:.0%} of the accesses; the rarest half has {1 - updates[50]:.0%} of the updates, "
            f"{1 - accesses[50]:.0%} of the accesses{rare}"
        )

    def write(self, folder: Path) -> None:
        """Write expected.txt and frequency.png."""
        with replace_atomically(folder / "expected.txt") as temporary:
            temporary.write_text(self.table)
        with replace_atomically(folder / "frequency.png") as temporary:
            self._plot(temporary)

    def _plot(self, path: Path) -> None:
        from matplotlib.figure import Figure  # here, since it takes a second and one rank needs it

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        percent = np.linspace(0, 100, 101)
        for name, amounts in (
            ("updates", self.updates),
            ("accesses", self.accesses),
            ("loads from other hosts", self.loads),
        ):
            if amounts.any():
                axes.plot(percent, 100 * share_curve(amounts, self.updates), label=name)
        axes.set(xlabel="rows, the most updated first (%)", ylabel="share (%)", xlim=(0, 100), ylim=(0, 100))
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(path, format="png", dpi=150)


def _expect(
    communicator: Communicator, hotness: Hotness, is_far: np.ndarray, layout: traffic.Layout, accesses: np.ndarray
) -> Iterator[str]:
    """Collective: per step and rank, means over the ranks."""
    size = communicator.size
    far_access, far_update = hotness.access_rates[is_far], hotness.update_rates[is_far]

    def mean(value: float) -> float:
        return communicator.world.allreduce(float(value)) / size

    yield f"Expected rows per step and rank, of {mean(far_access.sum()):,.0f} rows of other hosts that are read."
    yield ""
    yield "fetched, by staleness.max_steps (across; -1: no limit) and staleness.max_missed_updates (down)"
    yield "      " + "".join(f"{steps:>10}" for steps in MAX_STEPS)
    for missed in MAX_MISSED_UPDATES:
        fetched = [
            mean(traffic.fetch_rates(far_access, max_ages(far_update, steps, missed)).sum()) for steps in MAX_STEPS
        ]
        yield f"{missed:>6}" + "".join(f"{rows:>10,.0f}" for rows in fetched)
    yield ""
    yield "gradients sent, by aggregation.window_steps"
    for steps in WINDOW_STEPS:
        yield f"{steps:>6}{mean(traffic.send_rates(far_access, steps).sum()):>10,.0f}"
    yield ""
    yield "megabytes of gradients of hot rows, by cache.fraction, for sparse and for dense allreduce"
    by_heat = np.sort(accesses)[::-1]
    for share in CACHE_SHARES:
        num_hot = int(share * len(accesses))
        touched = by_heat[:num_hot].sum() / layout.num_senders
        megabytes = [
            traffic.hot_sync_bytes(kind, layout, num_hot, touched) / 1e6
            for kind in ("sparse_allreduce", "dense_allreduce")
        ]
        yield f"{share:>6}" + "".join(f"{value:>10.2f}" for value in megabytes)


def _sum(communicator: Communicator, rates: np.ndarray) -> np.ndarray:
    total = rates.astype(np.float64)
    communicator.world.Allreduce(MPI.IN_PLACE, total)
    return total
