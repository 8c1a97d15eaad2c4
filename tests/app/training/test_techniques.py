"""GLPilot's techniques in whole runs: nothing changes where their bounds are zero, nothing is lost, all is repeatable.

Copies and waiting gradients need several hosts; where all ranks are on one, only the cache is at work.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from glpilot.app.embedding.copies.reader import RowReader
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.results.checkpoint import folders
from glpilot.app.training.loop import PREEMPTED_EXIT_CODE
from glpilot.app.training.open_run import open_run
from glpilot.app.training.step import Trainer
from glpilot.data.hdf5 import open_file, read_dataset
from helpers.runs import Alone, gather_rows, losses_of, make_config, records_of, train_run, write_parts

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]

# Small enough that rows are evicted, expire and are promoted within a few steps.
COMMON = dict(sampler__fanouts="4,3", model__dropout=0.3, train__epochs=2, sampler__batch_size=12)
ALL_ON = dict(
    COMMON,
    preset="glpilot",
    staleness__max_steps=5,
    staleness__max_missed_updates=3,
    staleness__buffer_rows=60,
    aggregation__window_steps=4,
    cache__rows=40,
    cache__refresh_epochs=1,
    cache__check_replicas="true",
)


@pytest.fixture
def parts(communicator, shared_folder):
    return write_parts(communicator, shared_folder)


def table_of(communicator, parts, run, **flags):
    """Collective: all embedding rows of a run's newest checkpoint."""
    with open_run(communicator, make_config(**flags), run, parts, None) as opened:
        return gather_rows(communicator, rows_of(opened.state.inputs.embeddings.records))


ZERO = dict(COMMON, preset="glpilot", aggregation__window_steps=1)


@pytest.mark.parametrize("bound", ["staleness__max_steps", "staleness__max_missed_updates"])
def test_zero_bounds_without_a_cache_are_the_synchronous_run_bit_for_bit(communicator, shared_folder, parts, bound):
    train_run(communicator, parts, shared_folder / "a", preset="synchronous", **COMMON)
    train_run(communicator, parts, shared_folder / "b", cache__rows=0, **{bound: 0}, **ZERO)
    assert losses_of(shared_folder / "a") == losses_of(shared_folder / "b")


@pytest.mark.parametrize("hot", ["sparse_allreduce", "dense_allreduce"])
def test_zero_bounds_with_a_cache_are_the_synchronous_run(communicator, shared_folder, parts, hot):
    train_run(communicator, parts, shared_folder / "a", preset="synchronous", **COMMON)
    train_run(communicator, parts, shared_folder / "b", cache__rows=100, sync__hot=hot, staleness__max_steps=0, **ZERO)
    np.testing.assert_allclose(losses_of(shared_folder / "a"), losses_of(shared_folder / "b"), rtol=1e-5)
    assert json.loads((shared_folder / "b/summary.json").read_text())["rows_per_step"]["hot"] > 0


def test_the_dgl_preset_is_the_synchronous_run(communicator, shared_folder, parts):
    for preset in ("synchronous", "dgl"):
        train_run(communicator, parts, shared_folder / preset, preset=preset, **COMMON)
    np.testing.assert_allclose(losses_of(shared_folder / "synchronous"), losses_of(shared_folder / "dgl"), rtol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"staleness__prefetch": "false"},
        {"staleness__max_steps": -1, "staleness__max_missed_updates": -1},
        {"cache__hotness": "analytical"},
        {"embedding__fetch": "alltoall", "sync__cold": "sparse_allreduce"},
    ],
    ids=lambda changes: ",".join(changes) or "all on",
)
def test_the_same_command_twice_gives_the_same_bits(communicator, shared_folder, parts, changes):
    flags = {**ALL_ON, **changes}
    for name in "ab":
        assert train_run(communicator, parts, shared_folder / name, **flags) == 0
    assert losses_of(shared_folder / "a") == losses_of(shared_folder / "b")
    tables = [table_of(communicator, parts, shared_folder / name, **flags) for name in "ab"]
    np.testing.assert_array_equal(*tables)


def test_both_fetches_read_the_same_rows(communicator, shared_folder, parts):
    for fetch in ("rma", "alltoall"):
        train_run(communicator, parts, shared_folder / fetch, embedding__fetch=fetch, **ALL_ON)
    assert losses_of(shared_folder / "rma") == losses_of(shared_folder / "alltoall")


@pytest.mark.parametrize("prefetch", ["true", "false"])
def test_stopped_after_any_step_and_resumed_gives_the_same_bits(communicator, shared_folder, parts, prefetch):
    flags = dict(ALL_ON, staleness__prefetch=prefetch)
    whole, stopped = shared_folder / "whole", shared_folder / "stopped"
    train_run(communicator, parts, whole, **flags)
    for _ in range(len(losses_of(whole))):  # one step a start, across the ends of epochs
        code = train_run(communicator, parts, stopped, "auto", run__stop_after_steps=1, **flags)
        assert code == PREEMPTED_EXIT_CODE
    assert train_run(communicator, parts, stopped, "auto", **flags) == 0
    assert losses_of(stopped) == losses_of(whole)
    np.testing.assert_array_equal(*(table_of(communicator, parts, run, **flags) for run in (stopped, whole)))


def test_more_epochs_later_give_the_same_bits(communicator, shared_folder, parts):
    train_run(communicator, parts, shared_folder / "a", **{**ALL_ON, "train__epochs": 3})
    train_run(communicator, parts, shared_folder / "b", **{**ALL_ON, "train__epochs": 1, "cache__refresh_epochs": 0})
    train_run(communicator, parts, shared_folder / "c", **{**ALL_ON, "cache__refresh_epochs": 0, "train__epochs": 3})
    train_run(
        communicator, parts, shared_folder / "b", "auto", **{**ALL_ON, "cache__refresh_epochs": 0, "train__epochs": 3}
    )
    assert losses_of(shared_folder / "b") == losses_of(shared_folder / "c")
    assert len(losses_of(shared_folder / "a")) == len(losses_of(shared_folder / "b"))


def waiting_in(folder) -> int:
    """Gradients that wait in a checkpoint, over all its ranks."""
    num_waiting = 0
    for path in folder.glob("rows-*.h5"):
        with open_file(path, "glpilot.checkpoint.rows") as file:
            for name in ("nids", "due_nids") if "window" in file else ():
                num_waiting += len(read_dataset(file, f"window/{name}"))
    return num_waiting


def test_what_waits_in_a_checkpoint_is_applied_wherever_it_is_loaded(communicator, shared_folder, parts, monkeypatch):
    """The rows of a run that settles after a step, and those of its checkpoint, loaded on all ranks and on one."""
    flags, settled = dict(ALL_ON, cache__refresh_epochs=0), []
    write_back = Trainer.write_back

    def write_back_and_settle_a_copy(trainer):
        write_back(trainer)
        table = trainer.table
        if len(table.cache) and not settled:
            records, state, waiting = (
                table.store.records.copy(),
                table.state.copy(),
                table.window and table.window.state(),
            )
            settled.append(None)
            trainer.settle()
            settled[0] = gather_rows(communicator, rows_of(table.store.records))
            table.store.records[...], table.state[...] = records, state
            if waiting:
                table.window.load_state(waiting)
            table.cache.load(table.cache.nids, table.cache.records.numpy(), table.cache.state.numpy())

    run = shared_folder / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "write_back", write_back_and_settle_a_copy)
        train_run(communicator, parts, run, run__stop_after_steps=2, **flags)
    folder = folders.list_checkpoints(run / "checkpoints")[0]
    assert (waiting_in(folder) > 0) == (communicator.num_hosts > 1)
    np.testing.assert_allclose(table_of(communicator, parts, run, **flags), settled[0], atol=1e-6)
    alone = Alone(communicator)
    np.testing.assert_allclose(table_of(alone, parts, run, **flags), settled[0], atol=1e-6)
    assert train_run(communicator, parts, run, "auto", **{**flags, "aggregation__window_steps": 1}) == 0


def test_rows_packed_for_a_device_are_the_same(communicator, shared_folder, parts, monkeypatch):
    """The way of rows to a GPU and of gradients back, without one."""
    train_run(communicator, parts, shared_folder / "a", **ALL_ON)
    make = RowReader.__init__
    monkeypatch.setattr(RowReader, "__init__", lambda reader, *arguments: make(reader, *arguments, packs=True))
    train_run(communicator, parts, shared_folder / "b", **ALL_ON)
    assert losses_of(shared_folder / "a") == losses_of(shared_folder / "b")


def test_bounds_hold_and_are_reported(communicator, shared_folder, parts):
    run = shared_folder / "run"
    train_run(communicator, parts, run, **ALL_ON)
    summary = json.loads((run / "summary.json").read_text())
    rows, gradients, staleness = (summary[key] for key in ("rows_per_step", "gradients_per_step", "staleness"))
    assert rows["input"] == pytest.approx(sum(rows[kind] for kind in ("hot", "owned", "near", "buffered", "fetched")))
    assert rows["hot"] > 0 and summary["cached_rows"] == 40
    has_hosts = communicator.num_hosts > 1
    assert (rows["buffered"] > 0) == has_hosts
    assert staleness["max_steps"] <= 5 and (staleness["max_steps"] > 1) == has_hosts
    assert (
        0 <= gradients["sent"] <= gradients["due"] <= gradients["far"]
        and (gradients["due"] < gradients["far"]) == has_hosts
    )
    by_epoch = [record["staleness"] for record in records_of(run) if "staleness" in record]
    assert len(by_epoch) == (2 if has_hosts else 0)
    if has_hosts:
        assert sum(by_epoch[-1]["steps_histogram"].values()) > sum(by_epoch[0]["steps_histogram"].values()) > 0


def test_hotness_is_kept_with_the_run(communicator, shared_folder, parts):
    run = shared_folder / "run"
    train_run(communicator, parts, run, **ALL_ON)
    files = sorted(path.relative_to(run / "hotness").as_posix() for path in (run / "hotness").rglob("*.h5"))
    assert files == [f"epoch-{epoch}/rank-{rank:05d}.h5" for epoch in (0, 1) for rank in range(communicator.size)]
