"""How often each rank reads each row, kept with the run: runs/NAME/hotness/epoch-E/rank-R.h5, as of epoch E."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mpi4py import MPI

from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.data import schema
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import create_file, open_file, read_dataset, write_dataset


def hotness_path(run: Path, epoch: int, rank: int) -> Path:
    return Path(run) / "hotness" / f"epoch-{epoch}" / f"rank-{rank:05d}.h5"


def save_access_rates(communicator: Communicator, run: Path, epoch: int, rates: np.ndarray) -> None:
    """Collective: keep each rank's access rates, float32 [num_nodes], as of an epoch with the run.

    Raises:
        AgreedError: it cannot be written.
    """
    with agreement(communicator.world):
        path = hotness_path(run, epoch, communicator.rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        with create_file(path, schema.HOTNESS_FORMAT) as file:
            file.attrs[schema.NUM_RANKS] = communicator.size
            write_dataset(file, schema.ACCESS_RATES, rates)


def load_access_rates(communicator: Communicator, run: Path, epoch: int, num_nodes: int) -> np.ndarray | None:
    """Collective: what `save_access_rates` kept of this rank; None if it is gone, or was for other ranks.

    Raises:
        AgreedError: a file is damaged.
    """
    rates = None
    with agreement(communicator.world):
        path = hotness_path(run, epoch, communicator.rank)
        if path.is_file():
            with open_file(path, schema.HOTNESS_FORMAT) as file:
                if file.attrs.get(schema.NUM_RANKS) == communicator.size:
                    rates = read_dataset(file, schema.ACCESS_RATES)
                    if rates.shape != (num_nodes,):
                        raise UserError(f"{path}: is of another graph; remove the folder {path.parent.parent}")
    return rates if communicator.world.allreduce(rates is not None, op=MPI.LAND) else None
