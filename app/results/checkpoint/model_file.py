"""model.h5: the weights and the dense optimizer's state, the same on every rank and written once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from glpilot.app.results.checkpoint.snapshot import Snapshot
from glpilot.data import schema
from glpilot.data.hdf5 import create_file, open_file, read_dataset, write_dataset

MODEL_FILE = "model.h5"


def write_model(path: Path, snapshot: Snapshot) -> None:
    with create_file(path, schema.MODEL_FORMAT) as file:
        for name, tensor in snapshot.weights.items():
            write_dataset(file, f"{schema.PARAMETERS}/{name}", tensor.cpu().numpy())
        for index, state in snapshot.optimizer.items():
            for name, tensor in state.items():
                write_dataset(file, f"{schema.OPTIMIZER}/{index}/{name}", tensor.cpu().numpy())


def read_model(path: Path, names: Iterable[str]) -> tuple[dict[str, Tensor], dict[int, dict[str, Tensor]] | None]:
    """The weights of these names, and the optimizer's state; None if no step was made.

    Raises:
        UserError: the file is damaged, or of another model.
    """
    with open_file(path, schema.MODEL_FORMAT) as file:
        weights = {
            name: torch.from_numpy(np.asarray(read_dataset(file, f"{schema.PARAMETERS}/{name}"))) for name in names
        }
        if schema.OPTIMIZER not in file:
            return weights, None
        return weights, {
            int(index): {name: torch.from_numpy(np.asarray(dataset[()])) for name, dataset in group.items()}
            for index, group in file[schema.OPTIMIZER].items()
        }
