import numpy as np
import pytest
from hypothesis import given

from glpilot.partition.relabel import index_bits, relabel, relabel_in_edges
from helpers.graphs import edge_set, make_graph, partitioned_graphs


@given(partitioned_graphs())
def test_numbers_are_a_permutation_by_part(case):
    graph, part_id, num_parts = case
    relabelling = relabel(part_id, num_parts)
    assert sorted(relabelling.nids) == list(range(graph.num_nodes))
    assert (relabelling.nids[relabelling.graph_nids] == np.arange(graph.num_nodes)).all()
    assert relabelling.offsets[0] == 0 and relabelling.offsets[-1] == graph.num_nodes
    for p in range(num_parts):
        # exactly the part's rows, in the order that they have in the graph
        assert relabelling.rows_of(p).tolist() == [row for row in range(graph.num_nodes) if part_id[row] == p]


@given(partitioned_graphs())
def test_edges_mapped_back_are_those_of_the_graph(case):
    graph, part_id, num_parts = case
    relabelling = relabel(part_id, num_parts, np.int32)
    mapped_back = []
    for p in range(num_parts):
        indptr, indices = relabel_in_edges(graph, relabelling.rows_of(p), relabelling.nids)
        assert indices.dtype == np.int32 and indptr.dtype == np.int64
        for row in range(len(indptr) - 1):
            assert (np.diff(indices[indptr[row] : indptr[row + 1]]) > 0).all()
        mapped_back += [
            (int(relabelling.graph_nids[source]), int(relabelling.graph_nids[target]))
            for source, target in edge_set(indptr, indices, int(relabelling.offsets[p]))
        ]
    assert sorted(mapped_back) == sorted(edge_set(graph.indptr, graph.indices))


@pytest.mark.parametrize("num_parts", [3, 2**16 + 2])
def test_order_is_kept_in_a_large_part(num_parts):
    part_id = np.random.default_rng(0).integers(0, 3, 2000)
    relabelling = relabel(part_id, num_parts)
    assert all((np.diff(relabelling.rows_of(p)) > 0).all() for p in range(3))


def test_more_parts_than_16_bits_count():
    num_parts = 2**16 + 2
    part_id = np.array([num_parts - 1, 0, 2**16, 1])
    assert relabel(part_id, num_parts).graph_nids.tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize(
    "num_nodes, num_edges, bits",
    [
        (10, 20, 32),
        (2**31 - 1, 5, 32),
        (2**31, 5, 64),
        (5, 2**31 - 1, 32),
        (5, 2**31, 64),
    ],
)
def test_index_width(num_nodes, num_edges, bits):
    assert index_bits(num_nodes, num_edges) == bits


def test_wide_indices_stay_wide():
    graph = make_graph(3, [(0, 1), (2, 1)])
    relabelling = relabel(np.array([1, 0, 1]), 2, np.int64)
    indptr, indices = relabel_in_edges(graph, relabelling.rows_of(0), relabelling.nids)
    assert indices.dtype == np.int64 and indices.tolist() == [1, 2] and indptr.tolist() == [0, 2]
