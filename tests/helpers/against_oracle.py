"""Train the program on its ranks and the oracle on the same batches, and compare what they have computed."""

from __future__ import annotations

import copy

import numpy as np
import torch

from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.graph.dataset import load_dataset
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.training.presample import measure_hotness
from glpilot.app.training.run import make_trainer
from glpilot.app.training.technique_choice import choose_techniques
from helpers.oracle import Oracle
from helpers.runs import gather_rows, make_config, whole_graph, write_parts

NUM_STEPS = 10


def run_both(communicator, folder, graph=None, **flags):
    """Train ten steps on the ranks and in the oracle; returns (losses, oracle's losses, rows, oracle's rows)."""
    config = make_config(**flags)
    parts = write_parts(communicator, folder, graph)
    dataset = load_dataset(communicator, parts)
    trainer = make_trainer(communicator, config, dataset)
    train_nids = dataset.nids_of(dataset.nodes.train_mask)
    num_seeds = communicator.world.allgather(len(train_nids))
    schedule = SeedSchedule(train_nids, num_seeds, config.sampler.batch_size, config.train.seed, communicator.rank)
    hotness, _ = measure_hotness(communicator, config, dataset, schedule)
    trainer.adopt(choose_techniques(communicator, config, dataset.offsets, hotness, trainer.device))
    whole = whole_graph(parts)
    oracle = Oracle(
        whole["indptr"],
        whole["indices"],
        whole["labels"],
        copy.deepcopy(trainer.model),
        gather_rows(communicator, rows_of(trainer.inputs.embeddings.records)),
        config.embedding.optimizer,
        config.embedding.lr,
        config.train.lr,
        torch.from_numpy(whole["features"]) if config.model.inputs == "both" else None,
    )
    losses, expected = [], []
    for step in range(NUM_STEPS):
        epoch, step_in_epoch = divmod(step, schedule.steps_per_epoch)
        prepared = trainer.sample(schedule.seeds(epoch, step_in_epoch), epoch, step_in_epoch, step)
        trainer.finish_step()
        losses.append(trainer.step(prepared, None, schedule.num_seeds_global(step_in_epoch), 1.0))
        expected.append(oracle.step(gather_rows(communicator, prepared.batch.seeds).astype(np.int64)))
    trainer.finish_step()
    trainer.settle()
    rows = gather_rows(communicator, rows_of(trainer.inputs.embeddings.records))
    trainer.free()
    dataset.free()
    return losses, expected, rows, oracle.table.weight.detach().numpy()


def assert_same(losses, expected, rows, expected_rows):
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(rows, expected_rows, rtol=1e-3, atol=2e-5)
    assert expected[-1] != expected[0]
