"""A finished run in memory, to evaluate or to export it on any number of ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset, load_dataset
from glpilot.app.results.checkpoint.folders import choose_to_read
from glpilot.app.results.checkpoint.position import Position
from glpilot.app.runtime.agreement import on_first_rank
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training import restore
from glpilot.app.training.state import LearnableState


@dataclass
class OpenedRun:
    """A run with one of its checkpoints in memory."""

    dataset: Dataset
    state: LearnableState
    position: Position
    checkpoint: Path


@contextlib.contextmanager
def open_run(
    communicator: Communicator, config: Config, run: Path, parts: Path, folder: Path | None
) -> Iterator[OpenedRun]:
    """Collective: load a run's parts and a checkpoint (`folder`, or the newest whole one), on any number of ranks.

    Raises:
        AgreedError: there is no whole checkpoint, or it does not fit the parts.
    """
    folder = on_first_rank(communicator.world, lambda: choose_to_read(run, folder))
    dataset = load_dataset(communicator, parts)
    state = LearnableState(communicator, config, dataset)
    position = restore.load(communicator, config, dataset, state, folder)
    restore.settle_waiting(communicator, state, folder)
    yield OpenedRun(dataset, state, position, folder)
    state.free()
    dataset.free()
