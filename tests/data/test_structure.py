import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glpilot.data.structure import simple_csc


@st.composite
def edge_lists(draw):
    num_nodes = draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    return num_nodes, draw(st.lists(st.tuples(node, node), max_size=40))


@given(edge_lists(), st.booleans(), st.sampled_from([np.int32, np.int64]))
def test_same_edges_as_a_set(given_edges, directed, dtype):
    num_nodes, edges = given_edges
    src, dst = np.array(edges, dtype=dtype).reshape(-1, 2).T
    structure = simple_csc(src, dst, num_nodes, directed)

    proper = [edge for edge in edges if edge[0] != edge[1]]
    expected = set(proper) if directed else {pair for u, v in proper for pair in ((u, v), (v, u))}
    num_distinct = len(expected) if directed else len(expected) // 2
    by_node = [structure.indices[structure.indptr[v] : structure.indptr[v + 1]].tolist() for v in range(num_nodes)]
    assert by_node == [sorted(u for u, w in expected if w == v) for v in range(num_nodes)]
    assert structure.num_self_loops == len(edges) - len(proper)
    assert structure.num_duplicates == len(proper) - num_distinct
    assert (structure.indptr.dtype, structure.indices.dtype) == (np.int64, np.int32)
    assert structure.indptr[-1] == len(structure.indices)


def test_leaves_its_arguments_alone():
    src, dst = np.array([2, 1, 0, 1]), np.array([1, 1, 2, 2])
    simple_csc(src, dst, 3, directed=False)
    assert (src.tolist(), dst.tolist()) == ([2, 1, 0, 1], [1, 1, 2, 2])


def test_ids_beyond_32_bits_of_keys():
    num_nodes = 3_000_000  # num_nodes² needs 43 bits
    structure = simple_csc(np.array([num_nodes - 1]), np.array([num_nodes - 2]), num_nodes, directed=True)
    assert structure.indices.tolist() == [num_nodes - 1]
    assert np.flatnonzero(np.diff(structure.indptr)).tolist() == [num_nodes - 2]
