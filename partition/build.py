"""Write a partitioned graph: a file for every part, and the book last."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

import numpy as np
from tqdm import tqdm

from glpilot.data.errors import UserError
from glpilot.data.graph import Graph
from glpilot.data.hdf5 import fsync
from glpilot.data.part import Part, part_path, write_part

from . import quality
from .book import FILE_NAME, PartitionBook, write_book
from .relabel import Relabelling, index_bits, relabel, relabel_in_edges

UNFINISHED = ".unfinished"  # the folder of parts that are being written
# The files that we write, and what a killed run leaves of them.
_PART_FILE = re.compile(r"part-\d{5,}\.h5|\.(part-\d{5,}\.h5|book\.json)\.\d+\.tmp")


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that parts cannot be written to, before the long work rather than after it.

    Raises:
        UserError: it holds a partition and `force` is false, or is a file, or cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: expected a folder for the parts, found a file; choose another name")
    if (folder / FILE_NAME).exists() and not force:
        raise UserError(f"{folder} holds a partition already; choose another name or give --force to replace it")
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"{folder}: cannot write to {nearest}; choose another folder")


def write_partition(
    folder: Path,
    graph: Graph,
    graph_hash: str,
    part_id: np.ndarray,
    num_parts: int,
    method: str,
    seed: int,
    force: bool = False,
) -> tuple[PartitionBook, list[quality.PartCounts]]:
    """Write one file a part, one after the other, and then the book, which marks the folder complete.

    An older partition in the folder is replaced when all parts are on disk, so work that fails leaves it as it was;
    other files stay. Shows a bar on a terminal.

    Args:
        part_id: int [num_nodes], the part of every row of the graph, from 0 to num_parts - 1.
        method: kept in the book; of an assignment file, its name.

    Raises:
        UserError: as `check_folder`, or the disk is full.
    """
    folder = Path(folder)
    check_folder(folder, force)
    bits = index_bits(graph.num_nodes, graph.num_edges)
    relabelling = relabel(part_id, num_parts, np.int32 if bits == 32 else np.int64)
    was_there = folder.exists()
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    counts = []
    try:
        for p in tqdm(range(num_parts), desc="writing parts", unit="part", disable=None, leave=False):
            part = make_part(graph, graph_hash, relabelling, p)
            counts.append(quality.count_part(part, graph.num_nodes))
            write_part(part_path(unfinished, p), part)
        book = PartitionBook(
            graph_hash=graph_hash,
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_classes=graph.nodes.num_classes,
            num_features=0 if graph.nodes.features is None else graph.nodes.features.shape[1],
            is_multilabel=graph.nodes.is_multilabel,
            is_directed=graph.is_directed,
            method=method,
            seed=seed,
            offsets=tuple(relabelling.offsets.tolist()),
            edge_cut=quality.edge_cut(counts, graph.is_directed),
            balance=quality.balance(counts),
            replication=quality.replication(counts),
            dtype_bits=bits,
        )
        write_book(unfinished, book)
        _move_partition(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    return book, counts


def _move_partition(unfinished: Path, folder: Path) -> None:
    """Put a complete partition in the place of an older one; its book comes last."""
    remove_partition(folder)
    try:
        for path in sorted(unfinished.iterdir(), key=lambda path: path.name == FILE_NAME):
            os.replace(path, folder / path.name)
        fsync(folder)
        unfinished.rmdir()
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error


def make_part(graph: Graph, graph_hash: str, relabelling: Relabelling, part_id: int) -> Part:
    """Everything that one part owns, relabelled."""
    rows = relabelling.rows_of(part_id)
    indptr, indices = relabel_in_edges(graph, rows, relabelling.nids)
    return Part(
        part_id=part_id,
        num_parts=len(relabelling.offsets) - 1,
        start_nid=int(relabelling.offsets[part_id]),
        graph_hash=graph_hash,
        indptr=indptr,
        indices=indices,
        graph_nids=rows,
        nodes=graph.nodes.take(rows),
    )


def remove_partition(folder: Path) -> None:
    """Remove a partition's own files; the book first, so that no book speaks of parts that are gone.

    Raises:
        UserError: one cannot be removed.
    """
    if not folder.exists():
        return
    try:
        (folder / FILE_NAME).unlink(missing_ok=True)
        fsync(folder)
        for path in folder.iterdir():
            if _PART_FILE.fullmatch(path.name):
                path.unlink()
    except OSError as error:
        raise UserError(f"cannot remove the old parts in {folder}: {error.strerror or error}") from error
