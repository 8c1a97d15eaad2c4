"""rows-R.h5: the rows of rank R with their optimizer state, and what waits there.

Rows are read by ranges of nids from whichever files hold them, so they can go to another number of ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from glpilot.app.embedding.rows.records import counts_of, rows_of
from glpilot.app.results.checkpoint.snapshot import RowsSnapshot, Waiting
from glpilot.data import schema
from glpilot.data.hdf5 import create_file, open_file, read_attribute, read_dataset, write_dataset

_GROUPS = (schema.BUFFER, schema.WINDOW, schema.PREFETCHED)


def shard_path(folder: Path, rank: int) -> Path:
    return Path(folder) / f"rows-{rank:05d}.h5"


def write_shard(path: Path, start_nid: int, rows: RowsSnapshot) -> None:
    """`start_nid` is that of the first row."""
    with create_file(path, schema.ROWS_FORMAT) as file:
        file.attrs[schema.START_NID] = start_nid
        file.attrs[schema.ROW_LR] = rows.lr
        file.attrs[schema.TECHNIQUES] = rows.techniques
        write_dataset(file, schema.ROWS, rows_of(rows.records))
        write_dataset(file, schema.COUNTS, counts_of(rows.records))
        write_dataset(file, schema.STATE, rows.state)
        for name in _GROUPS:
            for key, array in rows.waiting.get(name, {}).items():
                write_dataset(file, f"{name}/{key}", array)
        if "counted" in rows.waiting:
            counted = rows.waiting["counted"]
            write_dataset(file, schema.COUNTED, counted["counts"])
            file[schema.COUNTED].attrs[schema.NUM_STEPS] = counted["num_steps"][0]


def read_rows(folder: Path, manifest: dict[str, Any], start_nid: int, records: np.ndarray, state: np.ndarray) -> None:
    """Fill records [n, dim + 1] and state [n, any] of the nids from `start_nid` on, from whichever files hold them.

    Raises:
        UserError: a file is damaged.
    """
    stop_nid = start_nid + len(records)
    offsets = manifest["offsets"]
    for rank, (first, last) in enumerate(zip(offsets, offsets[1:])):
        low, high = max(start_nid, first), min(stop_nid, last)
        if low < high:
            with open_file(shard_path(folder, rank), schema.ROWS_FORMAT) as file:
                here, there = slice(low - start_nid, high - start_nid), (low - first, high - first)
                rows_of(records)[here] = read_dataset(file, schema.ROWS, *there)
                counts_of(records)[here] = read_dataset(file, schema.COUNTS, *there)
                state[here] = read_dataset(file, schema.STATE, *there)


def read_techniques(path: Path) -> str | None:
    """The digest of the techniques that what waits in a file has waited in; None if there is no such file."""
    if not path.is_file():
        return None
    with open_file(path, schema.ROWS_FORMAT) as file:
        return file.attrs.get(schema.TECHNIQUES)


def read_waiting(path: Path) -> Waiting:
    """What waits in one file.

    Raises:
        UserError: it is damaged.
    """
    with open_file(path, schema.ROWS_FORMAT) as file:
        waiting = {name: _read_group(file, name) for name in _GROUPS if name in file}
        if schema.COUNTED in file:
            num_steps = file[schema.COUNTED].attrs[schema.NUM_STEPS]
            waiting["counted"] = {"counts": read_dataset(file, schema.COUNTED), "num_steps": np.array([num_steps])}
        return waiting


def read_waiting_gradients(folder: Path) -> tuple[float | None, list[tuple[np.ndarray, np.ndarray]]]:
    """The gradients that wait in all files of a checkpoint, whoever held them: nids [n] and gradients [n, dim], in the
    order of the ranks; and the learning rate of the last step, None if there are no files.

    Raises:
        UserError: a file is damaged.
    """
    lr, gradients = None, []
    for path in sorted(Path(folder).glob("rows-*.h5")):
        with open_file(path, schema.ROWS_FORMAT) as file:
            lr = float(read_attribute(file, schema.ROW_LR))
            if schema.WINDOW in file:
                window = _read_group(file, schema.WINDOW)
                gradients += [(window["due_nids"], window["due_grads"]), (window["nids"], window["grads"])]
    return lr, gradients


def _read_group(file: h5py.File, name: str) -> dict[str, np.ndarray]:
    return {key: read_dataset(file, f"{name}/{key}") for key in file[name]}
