"""A run's state out of a checkpoint: rows and model at once, then what waits in it.

What waits can wait on only under the same techniques on the same ranks (`load_waiting`); elsewhere its gradients are
applied and its copies forgotten (`settle_waiting`).
"""

from __future__ import annotations

from pathlib import Path

from mpi4py import MPI

from glpilot.app.config.keys import Config
from glpilot.app.embedding.techniques import Techniques
from glpilot.app.graph.dataset import Dataset
from glpilot.app.results.checkpoint.manifest import check_fit, read_manifest
from glpilot.app.results.checkpoint.model_file import MODEL_FILE, read_model
from glpilot.app.results.checkpoint.position import Position
from glpilot.app.results.checkpoint.shard import (
    read_rows,
    read_techniques,
    read_waiting,
    read_waiting_gradients,
    shard_path,
)
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training.state import LearnableState


def load(communicator: Communicator, config: Config, dataset: Dataset, state: LearnableState, folder: Path) -> Position:
    """Collective: put a checkpoint's rows, their state, model and optimizer in place and return where it stood.

    Gradients that wait in it are left out; `load_waiting` or `settle_waiting` must follow.

    Raises:
        AgreedError: it does not fit the graph, the partition or the config; the key is named.
    """
    with agreement(communicator.world):
        manifest = read_manifest(folder)
        check_fit(folder, manifest, config, dataset)
        weights, optimizer_state = read_model(Path(folder) / MODEL_FILE, state.model.state_dict())
        state.model.load_state_dict(weights)
        if optimizer_state is not None:
            state.dense_optimizer.load_state_dict({**state.dense_optimizer.state_dict(), "state": optimizer_state})
        if state.table is not None:
            read_rows(Path(folder), manifest, dataset.start_nid, state.table.store.records, state.table.state)
    state.inputs.publish()
    return Position(**manifest["position"])


def can_load_waiting(communicator: Communicator, dataset: Dataset, techniques: Techniques, folder: Path) -> bool:
    """Collective: whether gradients that wait, and copies, can wait on as they did when the checkpoint was written."""
    fits = False
    with agreement(communicator.world):
        if read_manifest(folder)["offsets"] == dataset.offsets.tolist():
            fits = read_techniques(shard_path(folder, communicator.rank)) == techniques.digest()
    return communicator.world.allreduce(fits, op=MPI.LAND)


def load_waiting(communicator: Communicator, state: LearnableState, folder: Path) -> None:
    """Collective: put what waits in place, after the techniques were adopted that it waited in.

    Raises:
        AgreedError: the file is damaged.
    """
    assert state.table is not None
    with agreement(communicator.world):
        state.table.load_waiting(read_waiting(shard_path(folder, communicator.rank)))


def settle_waiting(communicator: Communicator, state: LearnableState, folder: Path) -> None:
    """Collective: apply the gradients that wait in a checkpoint, whoever held them; no cache may hold rows yet.

    Raises:
        AgreedError: a file is damaged.
    """
    if state.table is None:
        return
    with agreement(communicator.world):
        lr, gradients = read_waiting_gradients(folder)
    if lr is not None:
        state.table.lr = lr
    state.table.apply(gradients)
    state.inputs.publish()
