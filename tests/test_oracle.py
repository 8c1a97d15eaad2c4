"""Any number of ranks computes what one plain loop computes on the union of their batches."""
from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from graphs import make_graph
from oracle import Oracle
from runs import gather_rows, make_config, whole_graph, write_parts

from glpilot.app.graph.dataset import load_dataset
from glpilot.app.embedding.rows.records import rows_of
from glpilot.app.training.presample import measure_hotness
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.training.techniques import choose_techniques
from glpilot.app.training.run import make_trainer

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]
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
        whole["indptr"], whole["indices"], whole["labels"], copy.deepcopy(trainer.model),
        gather_rows(communicator, rows_of(trainer.inputs.embeddings.records)), config.embedding.optimizer,
        config.embedding.lr, config.train.lr,
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


@pytest.mark.parametrize("fetch", ["rma", "alltoall"])
@pytest.mark.parametrize("cold", ["alltoall", "sparse_allreduce"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
def test_optimizers_synchronisations_and_fetches(communicator, shared_folder, optimizer, cold, fetch):
    # Without sums on the host, rows of this host's other ranks travel by Horovod as well.
    flags = dict(embedding__optimizer=optimizer, sync__cold=cold, embedding__fetch=fetch, embedding__lr=0.05,
                 aggregation__on_host="false")
    assert_same(*run_both(communicator, shared_folder, **flags))


@pytest.mark.parametrize("model", ["sage", "gat", "gcn"])
@pytest.mark.parametrize("layers", [1, 3])
def test_models_and_depths(communicator, shared_folder, model, layers):
    fanouts = ",".join(["-1"] * layers)
    assert_same(*run_both(communicator, shared_folder, model__name=model, model__layers=layers, sampler__fanouts=fanouts))


@pytest.mark.parametrize("hot", ["sparse_allreduce", "dense_allreduce"])
@pytest.mark.parametrize("on_host", ["true", "false"])
@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_hot_rows_on_every_device(communicator, shared_folder, optimizer, hot, on_host):
    """A third of the rows is replicated; the replicas are compared after every step."""
    flags = dict(cache__rows=130, sync__hot=hot, aggregation__on_host=on_host, embedding__optimizer=optimizer,
                 cache__check_replicas="true", embedding__lr=0.05)
    assert_same(*run_both(communicator, shared_folder, **flags))


def test_all_rows_hot(communicator, shared_folder):
    assert_same(*run_both(communicator, shared_folder, cache__fraction=1, cache__check_replicas="true"))


def test_features_beside_embeddings(communicator, shared_folder):
    assert_same(*run_both(communicator, shared_folder, model__inputs="both"))


def test_several_labels_per_node(communicator, shared_folder):
    edges = np.random.default_rng(3).integers(0, 200, (600, 2))
    graph = make_graph(200, edges, is_multilabel=True)  # its rows start from given embeddings of width 3
    assert_same(*run_both(communicator, shared_folder, graph, embedding__dim=3))


def test_a_batch_size_of_one_leaves_ranks_without_seeds(communicator, shared_folder):
    assert_same(*run_both(communicator, shared_folder, sampler__batch_size=1))
