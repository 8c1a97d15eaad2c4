"""Writing a checkpoint: all ranks together, atomically."""

from __future__ import annotations

import shutil
from pathlib import Path

from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.results.checkpoint.folders import folder_of, list_checkpoints, number_of, remove_old
from glpilot.app.results.checkpoint.manifest import checksum, write_manifest
from glpilot.app.results.checkpoint.model_file import MODEL_FILE, write_model
from glpilot.app.results.checkpoint.position import Position
from glpilot.app.results.checkpoint.shard import shard_path, write_shard
from glpilot.app.results.checkpoint.snapshot import Snapshot
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import fsync, require_room


def save(
    communicator: Communicator, config: Config, dataset: Dataset, snapshot: Snapshot, position: Position, run: Path
) -> Path:
    """Collective: write a checkpoint, then remove all but the newest `train.keep_checkpoints`.

    Raises:
        AgreedError: it cannot be written; earlier ones are untouched.
    """
    folder = folder_of(run, position.step)
    temporary = folder.with_name(f".{folder.name}.tmp")
    world, is_root = communicator.world, communicator.rank == 0
    with agreement(world):
        if is_root:
            require_room(folder, _size_bytes(dataset, snapshot))
            _make_empty(temporary)
    with agreement(world):
        checksums = {}
        if snapshot.rows is not None:
            path = shard_path(temporary, communicator.rank)
            write_shard(path, dataset.start_nid, snapshot.rows)
            checksums[path.name] = checksum(path)
        if is_root:
            write_model(temporary / MODEL_FILE, snapshot)
            checksums[MODEL_FILE] = checksum(temporary / MODEL_FILE)
    gathered = world.gather(checksums) or []
    with agreement(world):
        if is_root:
            files = {name: digest for part in gathered for name, digest in part.items()}
            number = 1 + max(map(number_of, list_checkpoints(folder.parent)), default=0)
            write_manifest(temporary, number, config, dataset, position, files)
            _rename(temporary, folder)
            remove_old(folder.parent, config.train.keep_checkpoints)
    return folder


def _size_bytes(dataset: Dataset, snapshot: Snapshot) -> int:
    """Bytes of a whole checkpoint, but for headers and what waits."""
    weights = sum(weight.numel() for weight in snapshot.weights.values())
    rows = snapshot.rows
    floats_per_row = rows.records.shape[1] + rows.state.shape[1] if rows is not None else 0
    return 4 * (3 * weights + dataset.book.num_nodes * floats_per_row)


def _make_empty(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; free some space or choose another --run") from error


def _rename(temporary: Path, folder: Path) -> None:
    replaced = folder.with_name(f".{folder.name}.old")
    try:
        if folder.exists():
            folder.rename(replaced)
        temporary.rename(folder)
        fsync(folder.parent)
        shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}") from error
