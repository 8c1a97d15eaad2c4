"""Whole runs: repeatable bit for bit, resumable at any step, on the same or another number of ranks."""

from __future__ import annotations

import json
import shutil

import h5py
import numpy as np
import pytest

from glpilot.app.config.load import validate
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.results.checkpoint import folders
from glpilot.app.results.config_file import read_config
from glpilot.app.results.export import write_rows
from glpilot.app.runtime.agreement import AgreedError
from glpilot.app.training.evaluate import evaluate
from glpilot.app.training.loop import PREEMPTED_EXIT_CODE
from glpilot.app.training.open_run import open_run
from glpilot.app.training.step import Trainer
from glpilot.data.hdf5 import open_file
from glpilot.data.part import part_path, read_part
from glpilot.data.schema import EMBEDDINGS_FORMAT
from helpers.runs import NUM_PARTS, Alone, gather_rows, losses_of, make_config, records_of, train_run, write_parts

pytestmark = pytest.mark.mpi

# Sampling, dropout and a moving learning rate: all that a resumed run must pick up.
FLAGS = dict(
    sampler__fanouts="4,3",
    model__dropout=0.3,
    train__epochs=2,
    sampler__batch_size=12,
    train__lr_schedule="cosine",
    train__warmup_steps=2,
    train__eval_epochs=1,
)


@pytest.fixture
def parts(communicator, shared_folder):
    return write_parts(communicator, shared_folder)


def start(communicator, parts, run, resume="none", **flags):
    return train_run(communicator, parts, run, resume, **{**FLAGS, **flags})


def table_of(communicator, parts, run, **flags):
    """Collective: all embedding rows of a run's newest checkpoint."""
    with open_run(communicator, make_config(**{**FLAGS, **flags}), run, parts, None) as opened:
        return gather_rows(communicator, rows_of(opened.state.inputs.embeddings.records))


def test_the_same_command_twice_gives_the_same_bits(communicator, shared_folder, parts):
    runs = [shared_folder / name for name in "ab"]
    for run in runs:
        assert start(communicator, parts, run) == 0
    assert losses_of(runs[0]) == losses_of(runs[1])
    tables = [table_of(communicator, parts, run) for run in runs]
    np.testing.assert_array_equal(*tables)


def test_both_synchronisations_and_fetches_give_the_same_losses(communicator, shared_folder, parts):
    start(communicator, parts, shared_folder / "a")
    start(communicator, parts, shared_folder / "b", sync__cold="sparse_allreduce", embedding__fetch="alltoall")
    np.testing.assert_allclose(losses_of(shared_folder / "a"), losses_of(shared_folder / "b"), rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "rowwise_adagrad", "sgd"])
def test_stopped_after_any_step_and_resumed_gives_the_same_bits(communicator, shared_folder, parts, optimizer):
    flags = dict(embedding__optimizer=optimizer)
    whole, stopped = shared_folder / "whole", shared_folder / "stopped"
    start(communicator, parts, whole, **flags)
    num_steps = len(losses_of(whole))
    for _ in range(num_steps):  # one step a start, across the ends of epochs
        code = start(communicator, parts, stopped, "auto", run__stop_after_steps=1, **flags)
        assert code == PREEMPTED_EXIT_CODE
    assert start(communicator, parts, stopped, "auto", **flags) == 0
    assert losses_of(stopped) == losses_of(whole)
    tables = [table_of(communicator, parts, run, **flags) for run in (stopped, whole)]
    np.testing.assert_array_equal(*tables)
    keys = ("val_accuracy", "test_accuracy", "epoch_loss")
    assert [[record.get(key) for key in keys] for record in records_of(stopped)] == [
        [record.get(key) for key in keys] for record in records_of(whole)
    ]


def test_what_came_after_a_lost_checkpoint_is_forgotten(communicator, shared_folder, parts):
    """A run that dies between checkpoints has metrics beyond the one that it resumes from."""
    whole, killed = shared_folder / "whole", shared_folder / "killed"
    start(communicator, parts, whole, train__checkpoint_steps=3, train__keep_checkpoints=100)
    start(communicator, parts, killed, train__checkpoint_steps=3, train__keep_checkpoints=100)
    if communicator.rank == 0:
        for folder in folders.list_checkpoints(killed / "checkpoints")[:-1]:
            shutil.rmtree(folder)
    communicator.world.Barrier()
    start(communicator, parts, killed, "auto", train__checkpoint_steps=3)
    assert losses_of(killed) == losses_of(whole)


def test_resume_auto_passes_over_a_damaged_checkpoint(communicator, shared_folder, parts):
    run = shared_folder / "run"
    start(communicator, parts, run, train__keep_checkpoints=5)
    newest = folders.list_checkpoints(run / "checkpoints")[0]
    if communicator.rank == 0:
        with open(newest / "rows-00000.h5", "r+b") as file:
            file.seek(3000)
            file.write(b"damage")
    communicator.world.Barrier()
    found, rejected = folders.newest(run)
    assert found != newest and len(rejected) == 1 and "rows-00000.h5" in rejected[0]
    losses = losses_of(run)
    communicator.world.Barrier()
    assert start(communicator, parts, run, "auto") == 0
    assert losses_of(run) == losses


def test_going_on_from_an_earlier_checkpoint_keeps_what_is_written_then(communicator, shared_folder, parts):
    run = shared_folder / "run"
    start(communicator, parts, run, train__checkpoint_steps=2, train__keep_checkpoints=100)
    steps = sorted(int(path.name[5:]) for path in folders.list_checkpoints(run / "checkpoints"))
    earlier = str(run / "checkpoints" / f"step-{steps[0]}")
    start(communicator, parts, run, earlier, run__stop_after_steps=1, train__keep_checkpoints=1)
    communicator.world.Barrier()
    kept = folders.list_checkpoints(run / "checkpoints")
    assert [path.name for path in kept] == [f"step-{steps[0] + 1}"]
    assert folders.newest(run) == (kept[0], [])


def test_a_loss_that_is_not_finite_ends_the_run(communicator, shared_folder, parts, monkeypatch):
    step, losses = Trainer.step, []

    def diverge(trainer, *arguments):
        losses.append(step(trainer, *arguments))
        return losses[-1] if len(losses) < 3 else float("nan")

    monkeypatch.setattr(Trainer, "step", diverge)
    with pytest.raises(AgreedError, match="step 3: the loss is nan; lower train.lr"):
        start(communicator, parts, shared_folder / "run")


def test_parts_that_do_not_fit_their_book_are_refused(communicator, shared_folder, parts):
    """Features are not in the graph's hash, so a part without them passes for one of the same graph."""
    if communicator.rank == 0:
        with h5py.File(part_path(parts, 0), "r+") as file:
            del file["features"]
    communicator.world.Barrier()
    with pytest.raises(AgreedError, match="part-00000.h5: expected .* as in book.json"):
        start(communicator, parts, shared_folder / "run")


def test_a_checkpoint_continues_on_another_number_of_ranks(communicator, shared_folder, parts):
    """All ranks train; then each alone loads what all wrote."""
    run = shared_folder / "run"
    start(communicator, parts, run)
    with open_run(communicator, make_config(**FLAGS), run, parts, None) as opened:
        together = evaluate(communicator, make_config(**FLAGS), opened.dataset, opened.state, ("val", "test"))
        table = gather_rows(communicator, rows_of(opened.state.inputs.embeddings.records))
    alone = Alone(communicator)
    with open_run(alone, make_config(**FLAGS), run, parts, None) as opened:
        metrics = evaluate(alone, make_config(**FLAGS), opened.dataset, opened.state, ("val", "test"))
        np.testing.assert_array_equal(rows_of(opened.state.inputs.embeddings.records), table)
    assert metrics == pytest.approx(together)


def test_a_checkpoint_that_does_not_fit_is_refused(communicator, shared_folder, parts):
    run = shared_folder / "run"
    start(communicator, parts, run)
    with pytest.raises(AgreedError, match="embedding.dim: expected 7.*got 8"):
        start(communicator, parts, run, "auto", embedding__dim=8)
    with pytest.raises(AgreedError, match="holds checkpoints already"):
        start(communicator, parts, run)


def test_summary_and_config_of_a_run(communicator, shared_folder, parts):
    run = shared_folder / "run"
    start(communicator, parts, run)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["world_size"] == communicator.size and summary["parts"] == NUM_PARTS
    assert len(summary["epoch_seconds"]) == summary["epochs"] == 2
    rows = summary["rows_per_step"]
    assert rows["input"] == pytest.approx(rows["owned"] + rows["near"] + rows["fetched"])
    assert (rows["near"] > 0) == (communicator.size > communicator.num_hosts)
    assert (rows["fetched"] > 0) == (communicator.num_hosts > 1)
    assert summary["bytes_per_step"]["fetch"] == pytest.approx(rows["fetched"] * 8 * 4)  # 7 floats and the count
    assert 0 < summary["test_accuracy"] <= 1
    content, stored_parts = read_config(run)
    assert validate(content) == make_config(**FLAGS) and stored_parts == parts.resolve()


@pytest.mark.parametrize("eval_fanouts", ["full", "sampler"])
def test_full_evaluation_does_not_depend_on_ranks_and_sampled_one_of_all_neighbours_agrees(
    communicator, shared_folder, parts, eval_fanouts
):
    flags = {**FLAGS, "sampler__fanouts": "-1,-1"}
    run = shared_folder / "run"
    start(communicator, parts, run, **flags)
    config = make_config(**flags, train__eval_fanouts=eval_fanouts)
    reference = json.loads((run / "summary.json").read_text())
    with open_run(communicator, config, run, parts, None) as opened:
        metrics = evaluate(communicator, config, opened.dataset, opened.state, ("val", "test"))
    assert metrics == pytest.approx({key: reference[key] for key in metrics})


@pytest.mark.parametrize("suffix", [".h5", ".npy", ".csv"])
def test_export_gives_every_node_its_own_row(communicator, shared_folder, parts, suffix):
    run, output = shared_folder / "run", shared_folder / f"rows{suffix}"
    start(communicator, parts, run)
    with open_run(communicator, make_config(**FLAGS), run, parts, None) as opened:
        rows = rows_of(opened.state.inputs.embeddings.records)
        table = gather_rows(communicator, rows)
        write_rows(communicator, opened.dataset, rows, "embeddings", output)
    ids = np.concatenate([read_part(part_path(parts, part)).nodes.original_ids for part in range(NUM_PARTS)])
    if suffix == ".h5":
        with open_file(output, EMBEDDINGS_FORMAT) as file:
            found_ids, found = file["original_ids"].asstr()[:], file["embeddings"][:]
    elif suffix == ".npy":
        found, text = np.load(output), (shared_folder / "rows.npy.ids.jsonl").read_text()
        found_ids = [json.loads(line) for line in text.splitlines()]
    else:
        lines = [line.split(",") for line in output.read_text().splitlines()[1:]]
        found_ids, found = [line[0] for line in lines], np.array([line[1:] for line in lines], np.float32)
    np.testing.assert_array_equal(found, table)
    assert list(found_ids) == list(ids)
