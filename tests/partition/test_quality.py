import numpy as np
import pytest
from hypothesis import given

from glpilot.partition import quality
from glpilot.partition.build import make_part
from glpilot.partition.relabel import relabel
from helpers.graphs import edge_set, make_graph, partitioned_graphs


def count_parts(graph, part_id, num_parts):
    relabelling = relabel(part_id, num_parts, np.int32)
    return [quality.count_part(make_part(graph, "hash", relabelling, p), graph.num_nodes) for p in range(num_parts)]


@given(partitioned_graphs())
def test_numbers_are_those_of_counting_one_by_one(case):
    graph, part_id, num_parts = case
    counts = count_parts(graph, part_id, num_parts)
    edges = edge_set(graph.indptr, graph.indices)
    holders = [{int(part)} for part in part_id]
    cut, sizes = set(), {name: [0] * num_parts for name in ("nodes", "edges", "train_nodes")}
    for source, target in edges:
        holders[source].add(int(part_id[target]))
        sizes["edges"][part_id[target]] += 1
        if part_id[source] != part_id[target]:
            cut.add((source, target) if graph.is_directed else frozenset((source, target)))
    for part, is_training in zip(part_id, graph.nodes.train_mask):
        sizes["nodes"][part] += 1
        sizes["train_nodes"][part] += bool(is_training)

    assert quality.edge_cut(counts, graph.is_directed) == len(cut)
    assert quality.replication(counts) == pytest.approx(np.mean([len(parts) for parts in holders]))
    for name, ratio in quality.balance(counts).items():
        expected = max(sizes[name]) / np.mean(sizes[name]) if any(sizes[name]) else 1.0
        assert ratio == pytest.approx(expected), name
    assert sum(count.num_nodes for count in counts) == graph.num_nodes
    assert sum(count.num_edges for count in counts) == graph.num_edges


def test_a_square_in_two_halves():
    square = make_graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    counts = count_parts(square, np.array([0, 0, 1, 1]), 2)
    assert quality.edge_cut(counts, is_directed=False) == 2
    assert quality.replication(counts) == 2.0
    assert [count.num_remote_sources for count in counts] == [2, 2]


def test_one_part_is_perfect():
    counts = count_parts(make_graph(4, [(0, 1), (1, 2)]), np.zeros(4, dtype=int), 1)
    assert quality.edge_cut(counts, is_directed=False) == 0 and quality.replication(counts) == 1.0
    assert quality.balance(counts)["nodes"] == 1.0
