"""Small partitioned graphs and configs for the tests that train on several ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from glpilot.app.config import presets
from glpilot.app.config.keys import Config
from glpilot.app.config.load import load
from glpilot.app.training.run import train
from glpilot.data.graph import Graph
from glpilot.data.part import part_path, read_part
from glpilot.partition.build import write_partition
from helpers.graphs import planted_graph

NUM_PARTS = 12  # a multiple of 1, 2, 3 and 4 ranks


def labelled_graph() -> Graph:
    """400 nodes in three planted classes, all labelled, most of them in a split."""
    graph = planted_graph(num_nodes=400, num_blocks=3, degree=6)
    labels = (np.arange(graph.num_nodes) % 3).astype(np.int32)
    return replace(graph, nodes=replace(graph.nodes, labels=labels, embeddings=None))


def write_parts(communicator, folder: Path, graph=None) -> Path:
    """Collective: a planted graph in 12 parts: one of them owns nothing, one no training node, sizes differ."""
    parts = folder / "parts"
    if communicator.rank == 0:
        graph = graph or labelled_graph()
        rng = np.random.default_rng(5)
        part_id = rng.choice(NUM_PARTS - 1, graph.num_nodes, p=np.arange(1, NUM_PARTS) / 66)
        part_id[(part_id == 3) & graph.nodes.train_mask] = 4
        write_partition(parts, graph, "hash", part_id, NUM_PARTS, "test", 0)
    communicator.world.Barrier()
    return parts


def make_config(preset: str = "synchronous", **flags) -> Config:
    """A small full-neighbourhood config without dropout; flags are dotted keys with __ for the dot."""
    defaults = {
        "sampler.fanouts": "-1,-1",
        "sampler.batch_size": "30",
        "model.dropout": "0",
        "model.hidden": "8",
        "model.heads": "2",
        "model.inputs": "embeddings",
        "embedding.dim": "7",
        "embedding.init_scale": "0.5",
        "run.progress": "none",
        "run.device": "cpu",
    }
    given = {key.replace("__", "."): str(value) for key, value in flags.items()}
    return load(presets.preset(preset), None, {**defaults, **given})


def whole_graph(parts: Path) -> dict[str, np.ndarray]:
    """indptr, indices, labels and features of the relabelled graph, put together from the part files."""
    pieces = [read_part(part_path(parts, part_id)) for part_id in range(NUM_PARTS)]
    indptr, num_edges = [np.zeros(1, np.int64)], 0
    for piece in pieces:
        indptr.append(piece.indptr[1:] + num_edges)
        num_edges += len(piece.indices)
    return {
        "indptr": np.concatenate(indptr),
        "indices": np.concatenate([piece.indices for piece in pieces]),
        "labels": np.concatenate([piece.nodes.labels for piece in pieces]),
        "features": np.concatenate([piece.nodes.features for piece in pieces]),
    }


def gather_rows(communicator, local: np.ndarray) -> np.ndarray:
    """Collective: the rows of all ranks, one after the other."""
    return np.concatenate(communicator.world.allgather(local.copy()))


def train_run(communicator, parts: Path, run: Path, resume: str = "none", **flags) -> int:
    """Collective: a whole start of a run with make_config's flags; its exit code."""
    exit_code = train(communicator, make_config(**flags), parts, run, resume)
    communicator.world.Barrier()
    return exit_code


def records_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def losses_of(run: Path) -> list[float]:
    return [record["loss"] for record in records_of(run) if "loss" in record]


class Alone:
    """This rank as a world of its own."""

    def __init__(self, communicator):
        from mpi4py import MPI

        self.world = self.host = MPI.COMM_SELF
        self.rank, self.size, self.num_hosts, self.host_of_rank, self.place_of_rank = 0, 1, 1, [0], [0]
        self.is_near, self.across_hosts = np.array([True]), None
        self.resources = []
