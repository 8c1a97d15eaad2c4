"""Rows of all nodes with the users' own ids, written by all ranks: each its own, none gathers them.

Rows stand in the order of the partition, which is not that of the input; the id beside each row says which node
it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import h5py
import numpy as np
import pandas as pd

from glpilot.app.graph.dataset import Dataset
from glpilot.app.runtime.agreement import agreement
from glpilot.app.runtime.communicator import Communicator
from glpilot.data import hdf5, schema
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import create_dataset

SUFFIXES = (".h5", ".hdf5", ".npy", ".csv")
_CSV_BLOCK_ROWS = 10_000


def check_output(path: Path, force: bool) -> None:
    """Raises UserError if the format is unknown, or a file exists and may not be replaced, or cannot be written."""
    if path.suffix not in SUFFIXES:
        raise UserError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}, got '{path.suffix}'")
    for output in outputs_of(path):
        hdf5.check_output(output, force)


def outputs_of(path: Path) -> list[Path]:
    """The files that an export to `path` writes: an .npy has its ids beside it, a line of JSON each."""
    return [path, path.with_name(f"{path.name}.ids.jsonl")] if path.suffix == ".npy" else [path]


def write_rows(communicator: Communicator, dataset: Dataset, rows: np.ndarray, what: str, path: Path) -> None:
    """Collective: write one row per node. Files appear when they are complete.

    Args:
        rows: float32 [num_nodes_local, width] of this rank's nodes.
        what: "embeddings" or "outputs", the dataset's name in HDF5.

    Raises:
        AgreedError: a file cannot be written.
    """
    writers: dict[str, Callable[..., None]] = {".npy": _write_npy, ".csv": _write_csv}
    writer = writers.get(path.suffix, _write_hdf5)
    outputs = outputs_of(path)
    temporaries = [output.with_name(f".{output.name}.tmp") for output in outputs]
    is_root = communicator.rank == 0
    with agreement(communicator.world), _as_user_error(path):
        if is_root:
            path.parent.mkdir(parents=True, exist_ok=True)
            for temporary in temporaries:
                temporary.write_bytes(b"")
    try:
        writer(communicator, dataset, np.ascontiguousarray(rows), what, *temporaries)
        with agreement(communicator.world), _as_user_error(path):
            if is_root:
                for temporary, output in zip(temporaries, outputs):
                    hdf5.fsync(temporary)
                    os.replace(temporary, output)
    finally:
        if is_root:
            for temporary in temporaries:
                temporary.unlink(missing_ok=True)


def _write_hdf5(communicator: Communicator, dataset: Dataset, rows: np.ndarray, what: str, path: Path) -> None:
    """Ranks take turns, since HDF5 wants one writer at a time."""
    start = dataset.start_nid
    for turn in range(communicator.size):
        with agreement(communicator.world), _as_user_error(path):
            if turn == communicator.rank:
                with h5py.File(path, "w" if turn == 0 else "r+") as file:
                    if turn == 0:
                        _create_datasets(file, dataset, what, rows.shape[1])
                    file[what][start : start + len(rows)] = rows
                    file[schema.ORIGINAL_IDS][start : start + len(rows)] = dataset.nodes.original_ids


def _create_datasets(file: h5py.File, dataset: Dataset, what: str, width: int) -> None:
    num_nodes = dataset.book.num_nodes
    ids_are_text = dataset.nodes.original_ids.dtype == object
    file.attrs[schema.FORMAT] = schema.EMBEDDINGS_FORMAT
    file.attrs[schema.FORMAT_VERSION] = schema.VERSIONS[schema.EMBEDDINGS_FORMAT]
    file.attrs[schema.GRAPH_HASH] = dataset.book.graph_hash
    create_dataset(file, what, (num_nodes, width), np.float32)
    create_dataset(file, schema.ORIGINAL_IDS, (num_nodes,), h5py.string_dtype() if ids_are_text else np.int64)


def _write_npy(
    communicator: Communicator, dataset: Dataset, rows: np.ndarray, what: str, path: Path, ids_path: Path
) -> None:
    """Every rank writes its rows at their place in the one file, and its ids in a file beside it."""
    header = io.BytesIO()
    shape = (dataset.book.num_nodes, rows.shape[1])
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    offset = len(header.getvalue()) + dataset.start_nid * rows.shape[1] * 4
    pieces = [(offset, rows.astype("<f4", copy=False).data.cast("B"))] if rows.size else []
    if communicator.rank == 0:
        pieces.append((0, memoryview(header.getvalue())))
    ids = "".join(map(json_line, dataset.nodes.original_ids.tolist())).encode()
    with agreement(communicator.world), _as_user_error(path):
        _write_pieces(path, pieces)
    offset = _offset_after_lower_ranks(communicator, len(ids))
    with agreement(communicator.world), _as_user_error(ids_path):
        _write_pieces(ids_path, [(offset, memoryview(ids))])


def _write_csv(communicator: Communicator, dataset: Dataset, rows: np.ndarray, what: str, path: Path) -> None:
    """Every rank formats its own lines, then all write at once, each after the ranks below it."""
    prefix = "x" if what == "embeddings" else "logit"
    text = b"".join(_csv_blocks(dataset.nodes.original_ids, rows))
    if communicator.rank == 0:
        text = (",".join(["node"] + [f"{prefix}{column}" for column in range(rows.shape[1])]) + "\n").encode() + text
    offset = _offset_after_lower_ranks(communicator, len(text))
    with agreement(communicator.world), _as_user_error(path):
        _write_pieces(path, [(offset, memoryview(text))])


def _csv_blocks(original_ids: np.ndarray, rows: np.ndarray) -> Iterator[bytes]:
    for start in range(0, len(rows), _CSV_BLOCK_ROWS):
        block = slice(start, start + _CSV_BLOCK_ROWS)
        text = pd.DataFrame(rows[block]).to_csv(index=False, header=False, float_format="%.9g", lineterminator="\n")
        lines = zip(original_ids[block].tolist(), text.split("\n"))
        yield "".join(f"{quote(original_id)},{line}\n" for original_id, line in lines).encode()


def quote(original_id: int | str) -> str:
    """An id as a field of CSV (RFC 4180): in quotes where it holds what could end the field, or blanks at its ends."""
    text = str(original_id)
    if text == text.strip() and text and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def json_line(original_id: int | str) -> str:
    """An id as a line that holds no line break but its last character, whatever the id is made of."""
    return json.dumps(original_id) + "\n"


def _offset_after_lower_ranks(communicator: Communicator, num_bytes: int) -> int:
    """Collective: where this rank's bytes begin if all ranks' bytes stand one after the other."""
    return communicator.world.exscan(num_bytes) or 0


def _write_pieces(path: Path, pieces: list[tuple[int, memoryview]]) -> None:
    """Write bytes at their offsets without touching what other ranks write."""
    with open(path, "r+b", buffering=0) as file:
        for offset, piece in pieces:
            file.seek(offset)
            while len(piece):
                piece = piece[file.write(piece) :]
        os.fsync(file.fileno())


@contextlib.contextmanager
def _as_user_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
