"""Checkpoints: whole or absent, resumable on the same ranks bit for bit and on any other number of ranks.

checkpoints/step-N/ holds rows-R.h5 of every rank (rows, update counts, optimizer state; copies of other ranks' rows
and gradients that wait), model.h5 (weights and dense optimizer) and manifest.json with checksums and the position. It is written as a hidden folder that is
renamed when everything, the manifest last, is on disk.
"""
from __future__ import annotations

import hashlib
import math
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import h5py
import numpy as np
import torch
from mpi4py import MPI

from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.embedding.rows.records import counts_of, rows_of
from glpilot.app.embedding.copies.reader import Prefetched
from glpilot.app.training.techniques import Techniques
from glpilot.app.training.step import Trainer
from glpilot.data import schema
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import create_file, fsync, open_file, read_attribute, read_dataset, require_room, write_dataset
from glpilot.data.sealed_json import read_sealed, write_sealed

FORMAT_VERSION = 1


@dataclass
class Position:
    """Where a run stands.

    Attributes:
        step: steps done since the start of the run.
        epoch: epochs done; step_in_epoch: steps done of the next one, out of steps_per_epoch.
        epoch_loss_sum: of the steps done in this epoch. epoch_seconds: of whole epochs, then of this one so far.
        metrics_bytes: length of metrics.jsonl, which a resumed run cuts back to.
        hotness_epoch: epochs done when the hot rows were chosen.
    """

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    steps_per_epoch: int = 0
    epoch_loss_sum: float = 0.0
    epoch_seconds: list[float] = field(default_factory=list)
    partial_epoch_seconds: float = 0.0
    metrics_bytes: int = 0
    hotness_epoch: int = 0

    def on_steps_per_epoch(self, steps_per_epoch: int) -> Position:
        """The same place where an epoch has another number of steps, as on another number of ranks."""
        if steps_per_epoch == self.steps_per_epoch:
            return self
        step_in_epoch = self.step_in_epoch * steps_per_epoch // max(1, self.steps_per_epoch)
        changed = {**asdict(self), "steps_per_epoch": steps_per_epoch, "step_in_epoch": step_in_epoch}
        changed["epoch_loss_sum"] = self.epoch_loss_sum * step_in_epoch / max(1, self.step_in_epoch)
        return Position(**changed)


def folder_of(run: Path, step: int) -> Path:
    return Path(run) / "checkpoints" / f"step-{step}"


def save(
    communicator: Communicator, config: Config, dataset: Dataset, trainer: Trainer, position: Position, run: Path
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
            require_room(folder, _size_bytes(dataset, trainer))
            _make_empty(temporary)
    with agreement(world):
        checksums = {}
        if trainer.inputs.embeddings is not None:
            path = rows_path(temporary, communicator.rank)
            _write_rows(path, dataset, trainer)
            checksums[path.name] = checksum(path)
        if is_root:
            _write_model(temporary / "model.h5", trainer)
            checksums["model.h5"] = checksum(temporary / "model.h5")
    gathered = world.gather(checksums)
    with agreement(world):
        if is_root:
            files = {name: digest for part in gathered for name, digest in part.items()}
            number = 1 + max(map(_number_of, list_checkpoints(folder.parent)), default=0)
            _write_manifest(temporary, number, config, dataset, position, files)
            _rename(temporary, folder)
            _remove_old(folder.parent, config.train.keep_checkpoints)
    return folder


def newest(run: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint of a run, and a line on every newer one that was rejected, with the reason."""
    rejected = []
    for folder in list_checkpoints(Path(run) / "checkpoints"):
        try:
            verify(folder)
            return folder, rejected
        except UserError as error:
            rejected.append(str(error))
    return None, rejected


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoint folders, the last written first: after going on from an earlier one, that is not the highest step."""
    folders = [path for path in folder.glob("step-*") if path.name[5:].isdigit()]
    return sorted(folders, key=lambda path: (_number_of(path) or math.inf, int(path.name[5:])), reverse=True)


def _number_of(folder: Path) -> int:
    """The place of a checkpoint in the order of writing, from 1 on; 0 if its manifest is damaged."""
    try:
        return read_manifest(folder)["number"]
    except UserError:
        return 0


def verify(folder: Path) -> dict:
    """Read a checkpoint's manifest and compare its files with their checksums.

    Raises:
        UserError: it is not whole.
    """
    manifest = read_manifest(folder)
    for name, digest in manifest["files"].items():
        path = Path(folder) / name
        if not path.is_file():
            raise UserError(f"{folder}: not a whole checkpoint, {name} is missing; use another one")
        if checksum(path) != digest:
            raise UserError(f"{folder}: not a whole checkpoint, {name} does not have its checksum; use another one")
    return manifest


def read_manifest(folder: Path) -> dict:
    """The manifest of a checkpoint.

    Raises:
        UserError: it is missing, damaged, or of another version.
    """
    path = Path(folder) / "manifest.json"
    try:
        return read_sealed(path, FORMAT_VERSION)
    except FileNotFoundError:
        raise UserError(f"{folder}: not a whole checkpoint, manifest.json is missing; use another one") from None
    except UserError as error:
        raise UserError(f"not a whole checkpoint: {error}; use another one") from None


def load(communicator: Communicator, config: Config, dataset: Dataset, trainer: Trainer, folder: Path) -> Position:
    """Collective: put a checkpoint's rows, state, model and optimizer in place and return where it stood.

    Gradients that wait in it are left out; `load_waiting` or `settle_waiting` must follow.

    Raises:
        AgreedError: it does not fit the graph, the partition or the config; the key is named.
    """
    with agreement(communicator.world):
        manifest = read_manifest(folder)
        _check_fit(folder, manifest, config, dataset)
        _read_model(Path(folder) / "model.h5", trainer)
        if trainer.inputs.embeddings is not None:
            _read_rows(Path(folder), manifest, dataset, trainer)
    trainer.inputs.publish()
    return Position(**manifest["position"])


def can_load_waiting(communicator: Communicator, dataset: Dataset, techniques: Techniques, folder: Path) -> bool:
    """Collective: whether gradients that wait, and copies, can wait on as they did when the checkpoint was written."""
    fits = False
    with agreement(communicator.world):
        if read_manifest(folder)["offsets"] == dataset.offsets.tolist():
            path = rows_path(folder, communicator.rank)
            if path.is_file():
                with open_file(path, schema.ROWS_FORMAT) as file:
                    fits = file.attrs.get(schema.TECHNIQUES) == techniques.digest()
    return communicator.world.allreduce(fits, op=MPI.LAND)


def load_waiting(communicator: Communicator, trainer: Trainer, folder: Path) -> None:
    """Collective: put what waits in place, after the techniques were adopted that it waited in.

    Raises:
        AgreedError: the file is damaged.
    """
    with agreement(communicator.world):
        with open_file(rows_path(folder, communicator.rank), schema.ROWS_FORMAT) as file:
            trainer.buffer.load_state(_read_group(file, schema.BUFFER))
            if trainer.window is not None:
                trainer.window.load_state(_read_group(file, schema.WINDOW))
            if schema.PREFETCHED in file:
                trainer.reader.prefetched = Prefetched.of_state(_read_group(file, schema.PREFETCHED))
            if schema.COUNTED in file and trainer.access_counter is not None:
                counter = trainer.access_counter
                counter.counts[...] = read_dataset(file, schema.COUNTED)
                counter.num_steps = int(file[schema.COUNTED].attrs[schema.NUM_STEPS])


def settle_waiting(communicator: Communicator, trainer: Trainer, folder: Path) -> None:
    """Collective: apply the gradients that wait in a checkpoint, whoever held them; no cache may hold rows yet.

    Raises:
        AgreedError: a file is damaged.
    """
    if trainer.inputs.embeddings is None:
        return
    pieces = []
    with agreement(communicator.world):
        for path in sorted(Path(folder).glob("rows-*.h5")):
            with open_file(path, schema.ROWS_FORMAT) as file:
                waiting = _read_group(file, schema.WINDOW)
                trainer.row_lr = float(read_attribute(file, schema.ROW_LR))
            if waiting:
                pieces += [(waiting["due_nids"], waiting["due_grads"]), (waiting["nids"], waiting["grads"])]
    trainer.apply(pieces)


def checksum(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _make_empty(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; free some space or choose another --run") from error


def _size_bytes(dataset: Dataset, trainer: Trainer) -> int:
    """Bytes of a whole checkpoint, but for headers."""
    weights = sum(parameter.numel() for parameter in trainer.model.parameters())
    embeddings = trainer.inputs.embeddings
    floats_per_row = embeddings.dim + 1 + trainer.row_state.shape[1] if embeddings is not None else 0
    return 4 * (3 * weights + dataset.book.num_nodes * floats_per_row)


def rows_path(folder: Path, rank: int) -> Path:
    return Path(folder) / f"rows-{rank:05d}.h5"


def _write_rows(path: Path, dataset: Dataset, trainer: Trainer) -> None:
    records = trainer.inputs.embeddings.records
    with create_file(path, schema.ROWS_FORMAT) as file:
        file.attrs[schema.START_NID] = dataset.start_nid
        file.attrs[schema.ROW_LR] = trainer.row_lr
        file.attrs[schema.TECHNIQUES] = trainer.techniques.digest()
        write_dataset(file, schema.ROWS, rows_of(records))
        write_dataset(file, schema.COUNTS, counts_of(records))
        write_dataset(file, schema.STATE, trainer.row_state)
        _write_group(file, schema.BUFFER, trainer.buffer.state())
        if trainer.window is not None:
            _write_group(file, schema.WINDOW, trainer.window.state())
        if trainer.reader.prefetched is not None:
            _write_group(file, schema.PREFETCHED, trainer.reader.prefetched.state())
        if trainer.access_counter is not None:
            write_dataset(file, schema.COUNTED, trainer.access_counter.counts)
            file[schema.COUNTED].attrs[schema.NUM_STEPS] = trainer.access_counter.num_steps


def _write_group(file: h5py.File, name: str, arrays: dict[str, np.ndarray]) -> None:
    for key, array in arrays.items():
        write_dataset(file, f"{name}/{key}", array)


def _read_group(file: h5py.File, name: str) -> dict[str, np.ndarray]:
    """The datasets of a group; none if there is no such group."""
    return {key: read_dataset(file, f"{name}/{key}") for key in file[name]} if name in file else {}


def _write_model(path: Path, trainer: Trainer) -> None:
    with create_file(path, schema.MODEL_FORMAT) as file:
        for name, tensor in trainer.model.state_dict().items():
            write_dataset(file, f"{schema.PARAMETERS}/{name}", tensor.cpu().numpy())
        for index, state in trainer.dense_optimizer.state_dict()["state"].items():
            for name, tensor in state.items():
                write_dataset(file, f"{schema.OPTIMIZER}/{index}/{name}", tensor.cpu().numpy())


def _write_manifest(
    folder: Path, number: int, config: Config, dataset: Dataset, position: Position, files: dict[str, str]
) -> None:
    manifest = {
        "number": number,
        "graph_hash": dataset.book.graph_hash,
        "part_offsets": list(dataset.book.offsets),
        "offsets": dataset.offsets.tolist(),
        "position": asdict(position),
        "config": config.model_dump(),
        "files": files,
    }
    write_sealed(folder / "manifest.json", FORMAT_VERSION, manifest)


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


def _remove_old(folder: Path, num_kept: int) -> None:
    whole = [path for path in list_checkpoints(folder) if _number_of(path)]
    for old in whole[num_kept:]:
        shutil.rmtree(old, ignore_errors=True)


# What must be the same for a checkpoint to be of any use, beyond the graph.
_KEYS_THAT_MUST_FIT = (
    "model.name", "model.inputs", "model.hidden", "model.layers", "model.heads", "embedding.dim", "embedding.optimizer",
)


def _check_fit(folder: Path, manifest: dict, config: Config, dataset: Dataset) -> None:
    if manifest["graph_hash"] != dataset.book.graph_hash:
        raise UserError(f"{folder}: is of another graph than {dataset.folder}; give the parts it was trained on")
    if manifest["part_offsets"] != list(dataset.book.offsets):
        raise UserError(f"{folder}: is of another partition than {dataset.folder}; give the parts it was trained on")
    given = config.model_dump()
    for key in _KEYS_THAT_MUST_FIT:
        section, name = key.split(".")
        expected = manifest["config"][section][name]
        if given[section][name] != expected:
            raise UserError(f"{key}: expected {expected}, as in {folder}, got {given[section][name]}")


def _read_model(path: Path, trainer: Trainer) -> None:
    with open_file(path, schema.MODEL_FORMAT) as file:
        weights = {name: torch.from_numpy(np.asarray(read_dataset(file, f"{schema.PARAMETERS}/{name}")))
                   for name in trainer.model.state_dict()}
        trainer.model.load_state_dict(weights)
        optimizer = trainer.dense_optimizer.state_dict()
        if schema.OPTIMIZER in file:
            optimizer["state"] = {
                int(index): {name: torch.from_numpy(np.asarray(dataset[()])) for name, dataset in group.items()}
                for index, group in file[schema.OPTIMIZER].items()
            }
        trainer.dense_optimizer.load_state_dict(optimizer)


def _read_rows(folder: Path, manifest: dict, dataset: Dataset, trainer: Trainer) -> None:
    """Read this rank's rows from whichever files of the checkpoint hold them."""
    records = trainer.inputs.embeddings.records
    start, stop = dataset.start_nid, dataset.start_nid + len(records)
    offsets = manifest["offsets"]
    for rank, (first, last) in enumerate(zip(offsets, offsets[1:])):
        low, high = max(start, first), min(stop, last)
        if low < high:
            with open_file(rows_path(folder, rank), schema.ROWS_FORMAT) as file:
                here, there = slice(low - start, high - start), (low - first, high - first)
                rows_of(records)[here] = read_dataset(file, schema.ROWS, *there)
                counts_of(records)[here] = read_dataset(file, schema.COUNTS, *there)
                trainer.row_state[here] = read_dataset(file, schema.STATE, *there)
