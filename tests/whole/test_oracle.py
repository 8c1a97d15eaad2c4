"""Any number of ranks computes what one plain loop computes on the union of their batches."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.against_oracle import assert_same, run_both
from helpers.choices import MODELS, OPTIMIZERS
from helpers.graphs import make_graph

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]


@pytest.mark.parametrize("fetch", ["rma", "alltoall"])
@pytest.mark.parametrize("cold", ["alltoall", "sparse_allreduce"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_synchronisations_and_fetches(communicator, shared_folder, optimizer, cold, fetch):
    # Without sums on the host, rows of this host's other ranks travel by Horovod as well.
    flags = dict(
        embedding__optimizer=optimizer,
        sync__cold=cold,
        embedding__fetch=fetch,
        embedding__lr=0.05,
        aggregation__on_host="false",
    )
    assert_same(*run_both(communicator, shared_folder, **flags))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layers", [1, 3])
def test_models_and_depths(communicator, shared_folder, model, layers):
    fanouts = ",".join(["-1"] * layers)
    assert_same(
        *run_both(communicator, shared_folder, model__name=model, model__layers=layers, sampler__fanouts=fanouts)
    )


@pytest.mark.parametrize("hot", ["sparse_allreduce", "dense_allreduce"])
@pytest.mark.parametrize("on_host", ["true", "false"])
@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_hot_rows_on_every_device(communicator, shared_folder, optimizer, hot, on_host):
    """A third of the rows is replicated; the replicas are compared after every step."""
    flags = dict(
        cache__rows=130,
        sync__hot=hot,
        aggregation__on_host=on_host,
        embedding__optimizer=optimizer,
        cache__check_replicas="true",
        embedding__lr=0.05,
    )
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
