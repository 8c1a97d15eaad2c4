"""The checkpoint folders of a run: which there are, which to go on from, and which to remove."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Callable

from glpilot.app.results.checkpoint.manifest import read_manifest, verify
from glpilot.data.errors import UserError


def folder_of(run: Path, step: int) -> Path:
    return Path(run) / "checkpoints" / f"step-{step}"


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoint folders, the last written first: after going on from an earlier one, that is not the highest step."""
    folders = [path for path in folder.glob("step-*") if path.name[5:].isdigit()]
    return sorted(folders, key=lambda path: (number_of(path) or math.inf, int(path.name[5:])), reverse=True)


def number_of(folder: Path) -> int:
    """The place of a checkpoint in the order of writing, from 1 on; 0 if its manifest is damaged."""
    try:
        return read_manifest(folder)["number"]
    except UserError:
        return 0


def newest(run: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint of a run, and a line on every newer one that was rejected, with the reason."""
    rejected: list[str] = []
    for folder in list_checkpoints(Path(run) / "checkpoints"):
        try:
            verify(folder)
            return folder, rejected
        except UserError as error:
            rejected.append(str(error))
    return None, rejected


def choose_to_resume(run: Path, resume: str, say: Callable[[str], None]) -> Path | None:
    """The checkpoint that training goes on from, None to start afresh.

    Args:
        resume: as `glpilot train --resume` takes it.
        say: is told of damaged checkpoints.

    Raises:
        UserError: the one that is named is not whole, or none is named and there are some.
    """
    if resume == "auto":
        folder, rejected = newest(run)
        for line in rejected:
            say(f"rejected {line}")
        return folder
    if resume != "none":
        verify(Path(resume))
        return Path(resume)
    if list_checkpoints(run / "checkpoints"):
        raise UserError(f"--run {run}: holds checkpoints already; go on with --resume auto, or choose another name")
    return None


def choose_to_read(run: Path, folder: Path | None) -> Path:
    """The checkpoint to evaluate or to export: `folder`, or the newest whole one.

    Raises:
        UserError: it is not whole, or there is none.
    """
    if folder is not None:
        verify(folder)
        return folder
    folder, rejected = newest(run)
    if folder is None:
        reason = f" ({'; '.join(rejected)})" if rejected else ""
        raise UserError(f"{run}: expected a whole checkpoint, found none{reason}; train the run first")
    return folder


def remove_old(folder: Path, num_kept: int) -> None:
    """Remove all whole checkpoints but the `num_kept` newest."""
    whole = [path for path in list_checkpoints(folder) if number_of(path)]
    for old in whole[num_kept:]:
        shutil.rmtree(old, ignore_errors=True)
