"""A run's folder: where its config, metrics, checkpoints and summary lie."""
from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import yaml

from glpilot.app.results import checkpoint
from glpilot.app.config import keys as configuration
from glpilot.app.results.checkpoint import Position
from glpilot.app.runtime.agreement import on_first_rank
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset, load_dataset
from glpilot.app.training.step import Trainer
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import replace_atomically

PARTS_KEY = "parts"


def write_config(run: Path, config: Config, parts: Path) -> None:
    """Write runs/NAME/config.yaml: every key resolved, and the parts that the run trains on."""
    with replace_atomically(Path(run) / "config.yaml") as temporary:
        header = yaml.safe_dump({PARTS_KEY: str(Path(parts).resolve())})
        temporary.write_text(header + configuration.dump(config))


def read_config(run: Path) -> tuple[dict, Path]:
    """The sections of a run's config.yaml, and its parts.

    Raises:
        UserError: there is no run in this folder.
    """
    path = Path(run) / "config.yaml"
    if not path.is_file():
        raise UserError(f"{run}: expected a run's folder with config.yaml; train one with: glpilot train PARTS --run {run}")
    content = configuration.read_yaml(path)
    parts = content.pop(PARTS_KEY, None)
    if not isinstance(parts, str):
        raise UserError(f"{path}: {PARTS_KEY}: expected the path of the parts, got {parts!r}; write it there")
    for section, values in content.items():
        if not isinstance(values, dict):
            raise UserError(f"{path}: {section}: expected a section with keys, got {values!r}; mend it or train again")
    return content, Path(parts)


@dataclass
class OpenedRun:
    """A run with its newest checkpoint in memory."""

    dataset: Dataset
    trainer: Trainer
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
    folder = on_first_rank(communicator.world, lambda: _choose_checkpoint(run, folder))
    dataset = load_dataset(communicator, parts)
    trainer = Trainer(communicator, config, dataset)
    position = checkpoint.load(communicator, config, dataset, trainer, folder)
    checkpoint.settle_waiting(communicator, trainer, folder)
    yield OpenedRun(dataset, trainer, position, folder)
    trainer.free()
    dataset.free()


def _choose_checkpoint(run: Path, folder: Path | None) -> Path:
    if folder is not None:
        checkpoint.verify(folder)
        return folder
    folder, rejected = checkpoint.newest(run)
    if folder is None:
        reason = f" ({'; '.join(rejected)})" if rejected else ""
        raise UserError(f"{run}: expected a whole checkpoint, found none{reason}; train the run first")
    return folder
