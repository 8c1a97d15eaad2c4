import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.data.errors import UserError
from glpilot.data.graph import graph_hash, read_graph
from glpilot.data.synthetic import BlockModel, generate_graph
from helpers.command_line import run_command

FRACTIONS = (0.6, 0.2, 0.2)


def make(seed=1, **options):
    return generate_graph(BlockModel(**{"num_nodes": 4000, "degree": 12, "num_classes": 5, **options}), FRACTIONS, seed)


def ends(graph):
    return graph.indices, np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))


@settings(deadline=None, max_examples=40)
@given(
    num_nodes=st.integers(3, 60),
    share=st.floats(0.01, 0.5),
    num_classes=st.integers(1, 8),
    seed=st.integers(0, 3),
    homophily=st.sampled_from([0.0, 0.5, 1.0]),
    locality=st.sampled_from([0.0, 0.5, 1.0]),
    zipf=st.floats(0, 3),
)
def test_any_model_gives_a_simple_undirected_graph(num_nodes, share, num_classes, seed, homophily, locality, zipf):
    model = BlockModel(
        num_nodes, share * (num_nodes - 1), min(num_classes, num_nodes), homophily, locality, zipf_exponent=zipf
    )
    graph = generate_graph(model, FRACTIONS, seed)
    src, dst = ends(graph)
    edges = set(zip(src.tolist(), dst.tolist()))
    assert len(edges) == graph.num_edges <= 2 * model.num_edges
    assert all(u != v and (v, u) in edges for u, v in edges)
    labels = graph.nodes.labels
    assert set(labels.tolist()) == set(range(model.num_classes)) and graph.nodes.num_classes == model.num_classes
    if model.num_classes > 1 and homophily in (0, 1):
        assert ((labels[src] == labels[dst]) == homophily).all()


def test_as_many_edges_as_asked_for():
    assert make().num_edges == 4000 * 12
    assert make(degree=17.5, homophily=0.1, zipf_exponent=0).num_edges == 4000 * 17.5


def test_classes_are_planted():
    for homophily in (0.3, 0.8):
        graph = make(homophily=homophily)
        src, dst = ends(graph)
        found = np.mean(graph.nodes.labels[src] == graph.nodes.labels[dst])
        assert abs(found - homophily) < 0.08
        assert np.bincount(graph.nodes.labels).min() >= 4000 // 5 - 400


def test_degrees_follow_zipf():
    even, skewed = (np.sort(np.diff(make(zipf_exponent=s, locality=0.2).indptr))[::-1] for s in (0, 0.7))
    assert even[:40].sum() < 0.03 * even.sum()
    # The slope of log degree over log rank is the exponent, below the few hubs that are held back.
    ranks = np.arange(60, 1500)
    slope = np.polyfit(np.log(ranks), np.log(skewed[ranks]), 1)[0]
    assert -0.8 < slope < -0.55


def test_ids_tell_nothing():
    graph = make()
    degrees = np.diff(graph.indptr)
    for values in (graph.nodes.labels, degrees, graph.nodes.train_mask):
        assert abs(np.corrcoef(np.arange(4000), values)[0, 1]) < 0.06
    src, dst = ends(graph)
    assert abs(np.mean(np.abs(src - dst)) / 4000 - 1 / 3) < 0.05  # as far apart as any two numbers


def test_communities_are_local():
    """Most edges stay in a community, so some part of the nodes is joined mostly to itself."""
    graph = make(num_communities=10, locality=1.0, homophily=0.9)
    src, dst = ends(graph)
    import scipy.sparse.linalg

    adjacency = scipy.sparse.csr_matrix((np.ones(len(src)), (src, dst)))
    scale = scipy.sparse.diags(1 / np.sqrt(np.maximum(np.diff(graph.indptr), 1)))
    eigenvalues = scipy.sparse.linalg.eigsh(scale @ adjacency @ scale, k=12, return_eigenvectors=False)
    eigenvalues = np.sort(eigenvalues)[::-1]
    assert eigenvalues[9] > 0.7 and eigenvalues[10] < 0.65  # ten communities, ten large eigenvalues


def test_seed_decides():
    assert graph_hash(make(seed=3)) == graph_hash(make(seed=3)) != graph_hash(make(seed=4))


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"num_nodes": 1}, "--nodes 1"),
        ({"num_classes": 0}, "--classes 0"),
        ({"num_classes": 5000}, "--classes 5000"),
        ({"degree": 0}, "--degree 0"),
        ({"degree": -3.0}, "--degree -3"),
        ({"degree": 2000.0}, "--degree 2000"),
        ({"degree": float("nan")}, "--degree nan"),
        ({"homophily": 1.5}, "--homophily 1.5"),
        ({"locality": -0.1}, "--locality -0.1"),
        ({"zipf_exponent": float("nan")}, "--zipf nan"),
        ({"num_communities": 4}, "--communities 4"),
        ({"num_communities": 0}, "--communities 0"),
    ],
)
def test_refuses_models(options, expected):
    with pytest.raises(UserError, match=expected):
        make(**options)


def test_command(tmp_path):
    command = ("generate", "--nodes", 500, "--degree", 8, "--classes", 4, "--split", "0.5,0.25,0.25")
    code, out, err = run_command(*command, tmp_path / "a.h5")
    assert (code, err) == (0, "")
    assert "edges      2,000, undirected" in out and "split      250 train, 125 validation, 125 test" in out
    assert run_command(*command, tmp_path / "b.h5")[0] == 0
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    graph, digest = read_graph(tmp_path / "a.h5")
    assert digest == graph_hash(graph) and graph.nodes.original_ids.tolist() == list(range(500))

    code, out, err = run_command(*command, tmp_path / "a.h5")
    assert (code, out, err.count("\n")) == (2, "", 1) and "--force" in err
    assert run_command(*command, "--force", "--seed", 2, tmp_path / "a.h5")[0] == 0
    assert read_graph(tmp_path / "a.h5")[1] != digest


@pytest.mark.parametrize("arguments", [("--split", "1,1,1"), ("--seed", "-1"), ("--homophily", "2")])
def test_command_errors(tmp_path, arguments):
    command = ("generate", "--nodes", 500, "--degree", 8, "--classes", 4, *arguments, tmp_path / "a.h5")
    code, out, err = run_command(*command)
    assert (code, out, err.count("\n")) == (2, "", 1) and arguments[0] in err
    assert list(tmp_path.iterdir()) == []


def test_command_says_when_edges_find_no_room(tmp_path):
    command = ("generate", "--nodes", 50, "--degree", 10, "--classes", 10, "--homophily", 1, tmp_path / "a.h5")
    code, _, err = run_command(*command)
    assert code == 0 and "warning: 150 of 250 edges found no room" in err and err.count("\n") == 1
