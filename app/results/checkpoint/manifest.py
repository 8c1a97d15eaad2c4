"""manifest.json: what a checkpoint is of, where the run stood, and the checksum of every file; written last."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.results.checkpoint.position import Position
from glpilot.data.errors import UserError
from glpilot.data.sealed_json import read_sealed, write_sealed

FORMAT_VERSION = 1


def write_manifest(
    folder: Path, number: int, config: Config, dataset: Dataset, position: Position, files: dict[str, str]
) -> None:
    """Write the manifest of a checkpoint that is the `number`th of its run, with the checksums of its files by name."""
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


def read_manifest(folder: Path) -> dict[str, Any]:
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


def verify(folder: Path) -> dict[str, Any]:
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


# What must be the same for a checkpoint to be of any use, beyond the graph.
KEYS_THAT_MUST_FIT = (
    "model.name",
    "model.inputs",
    "model.hidden",
    "model.layers",
    "model.heads",
    "embedding.dim",
    "embedding.optimizer",
)


def check_fit(folder: Path, manifest: dict[str, Any], config: Config, dataset: Dataset) -> None:
    """Refuse a checkpoint of other data or of another shape.

    Raises:
        UserError: it is of another graph or partition, or a key differs that must not.
    """
    if manifest["graph_hash"] != dataset.book.graph_hash:
        raise UserError(f"{folder}: is of another graph than {dataset.folder}; give the parts it was trained on")
    if manifest["part_offsets"] != list(dataset.book.offsets):
        raise UserError(f"{folder}: is of another partition than {dataset.folder}; give the parts it was trained on")
    given = config.model_dump()
    for key in KEYS_THAT_MUST_FIT:
        section, name = key.split(".")
        expected = manifest["config"][section][name]
        if given[section][name] != expected:
            raise UserError(f"{key}: expected {expected}, as in {folder}, got {given[section][name]}")


def checksum(path: Path) -> str:
    """A digest of a file's content."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
