"""Graphs, parts and runs that version 0.1.0 wrote train on, resume and export as they did then.

tests/files/v0.1 holds a graph of 120 nodes in four parts, and runs that were stopped on two ranks, each a host of its
own, in the middle of an epoch, with copies, gradients and prefetched rows that wait. Beside each lies what that version
went on to compute: `losses.json`, of the whole run, and `embeddings.npy`, exported where the run was stopped.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from glpilot.app.cli import build_parser
from glpilot.app.commands.train import resolve
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.results.export import write_rows
from glpilot.app.training.open_run import open_run
from glpilot.app.training.run import train
from helpers.command_line import run_command
from helpers.launch import CHECKOUT
from helpers.runs import losses_of, records_of

FILES = CHECKOUT / "tests/files/v0.1"
RUNS = ("glpilot", "gat", "p3")


@pytest.fixture
def files(communicator, shared_folder):
    """A copy that all ranks see and may write to."""
    if communicator.size == 3:
        pytest.skip("four parts do not go on three ranks")
    if communicator.rank == 0:
        shutil.copytree(FILES, shared_folder / "files")
    communicator.world.Barrier()
    return shared_folder / "files"


def config_of(run: Path):
    return resolve(build_parser().parse_args(["train", "parts", "--run", str(run), "--resume", "auto"]), {})


@pytest.mark.mpi
@pytest.mark.hosts
@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on(communicator, files, name):
    run = files / "runs" / name
    assert train(communicator, config_of(run), files / "parts", run, "auto") == 0
    communicator.world.Barrier()
    if (communicator.size, communicator.num_hosts) == (2, 2):
        expected = json.loads((run / "losses.json").read_text())
        assert len(expected) == 12
        np.testing.assert_allclose(losses_of(run), expected, rtol=1e-5)  # other processors round otherwise
    assert 0.2 < records_of(run)[-1]["test_accuracy"] <= 1


@pytest.mark.mpi
@pytest.mark.hosts
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_exported(communicator, files, name):
    run, output = files / "runs" / name, files / "rows.npy"
    with open_run(communicator, config_of(run), run, files / "parts", None) as opened:
        write_rows(communicator, opened.dataset, rows_of(opened.state.inputs.embeddings.records), "embeddings", output)
    np.testing.assert_allclose(np.load(output), np.load(run / "embeddings.npy"), rtol=1e-6)
    with open(files / "rows.npy.ids.jsonl") as lines:
        assert [json.loads(line) for line in lines] == (files / "ids.txt").read_text().splitlines()


def test_a_graph_is_cut_as_it_was(tmp_path):
    code, _, error = run_command("partition", FILES / "graph.h5", "--parts", 4, tmp_path / "again")
    assert code == 0, error
    assert (tmp_path / "again/book.json").read_text() == (FILES / "parts/book.json").read_text()
