import tempfile
from dataclasses import replace

import numpy as np
import pytest

from glpilot.data.errors import UserError
from glpilot.partition import metis
from glpilot.partition.assign import assign, fill_empty_parts
from helpers.graphs import make_graph, planted_graph


@pytest.fixture
def metis_here(monkeypatch):
    """Start no process for METIS: seconds faster, but not reproducible."""
    monkeypatch.setattr("glpilot.partition.assign.partition_by_metis", metis.call_dgl)


def cut(graph, part_id) -> int:
    targets = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    return int((part_id[graph.indices] != part_id[targets]).sum())


def sizes(part_id, num_parts):
    return np.bincount(part_id, minlength=num_parts)


@pytest.mark.parametrize("method", ["random", "range", "metis"])
@pytest.mark.parametrize("num_parts", [1, 2, 3, 7, 20])
def test_every_part_gets_its_share(metis_here, method, num_parts):
    graph = planted_graph(200)
    part_id = assign(graph, num_parts, method)
    assert part_id.dtype == np.int32 and len(part_id) == 200
    assert len(sizes(part_id, num_parts)) == num_parts
    assert sizes(part_id, num_parts).min() > 0
    if method != "metis":
        assert np.ptp(sizes(part_id, num_parts)) <= 1
    if method == "range":
        assert (np.diff(part_id) >= 0).all()


def test_random_follows_its_seed():
    graph = planted_graph(200)
    first, again, other = (assign(graph, 4, "random", seed) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_metis_finds_planted_blocks_and_leaves_no_trace(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    graph = planted_graph(600, num_blocks=2)
    by_metis = assign(graph, 2, "metis")
    assert cut(graph, by_metis) < 0.3 * cut(graph, assign(graph, 2, "random"))
    assert abs(int(by_metis[0::2].sum()) - int(by_metis[1::2].sum())) > 250  # of 300 nodes in each block
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr() == ("", "")


def test_metis_gives_the_same_parts_again():
    # Of this graph METIS gives several partitions, if left to itself.
    graph = planted_graph(600, num_blocks=3)
    assert (assign(graph, 4, "metis", seed=1) == assign(graph, 4, "metis", seed=2)).all()


def test_metis_balances_nodes_edges_and_training_nodes(metis_here):
    graph = planted_graph(2000, num_blocks=4)
    # The training nodes are a block of their own, which the fewest cut edges would leave in one part.
    is_training = np.arange(2000) % 4 == 0
    graph = replace(graph, nodes=replace(graph.nodes, train_mask=is_training))
    part_id = assign(graph, 4, "metis")
    degrees = np.diff(graph.indptr)
    for weights in (np.ones(2000), is_training, degrees):
        load = np.bincount(part_id, weights=weights)
        assert load.max() / load.mean() < 1.1


def test_metis_takes_a_directed_graph(metis_here):
    # Every edge goes from a node to a later one of its block, which METIS alone would refuse.
    undirected = planted_graph(400, num_blocks=2)
    targets = np.repeat(np.arange(400), np.diff(undirected.indptr))
    forward = undirected.indices < targets
    graph = make_graph(400, np.stack((undirected.indices, targets), axis=1)[forward], is_directed=True)
    assert cut(graph, assign(graph, 2, "metis")) < 0.3 * cut(graph, assign(graph, 2, "random"))


def test_metis_sees_no_loops(monkeypatch):
    graph = planted_graph(100)
    targets = np.repeat(np.arange(100), np.diff(graph.indptr))
    edges = np.stack((graph.indices, targets), axis=1)
    loops = np.stack((np.arange(0, 100, 3),) * 2, axis=1)
    with_loops = make_graph(100, np.concatenate((edges, loops)))
    assert with_loops.num_edges == graph.num_edges + len(loops)
    seen = []
    monkeypatch.setattr(
        "glpilot.partition.assign.partition_by_metis", lambda *arguments: seen.append(arguments) or np.arange(100) % 3
    )
    assign(with_loops, 3, "metis")
    assert (seen[0][0] == graph.indptr).all() and (seen[0][1] == graph.indices).all()


@pytest.mark.parametrize(
    "num_nodes, edges, num_parts",
    [
        (50, [], 3),
        (1, [], 1),
        (2, [(0, 1)], 2),
        (10, [(0, 1), (1, 2), (5, 6)], 10),
        (60, [(i, i + 1) for i in range(20)], 40),
        (30, [(0, i) for i in range(1, 20)], 4),
    ],
)
@pytest.mark.parametrize("train_share", [0.0, 0.5, 1.0])
def test_metis_takes_odd_graphs(metis_here, num_nodes, edges, num_parts, train_share):
    graph = make_graph(num_nodes, edges)
    is_training = np.random.default_rng(0).random(num_nodes) < train_share
    graph = replace(graph, nodes=replace(graph.nodes, train_mask=is_training))
    assert sizes(assign(graph, num_parts, "metis"), num_parts).min() > 0


def test_metis_that_fails_says_why():
    graph = planted_graph(20)
    with pytest.raises(RuntimeError, match=r"METIS ended with code 1 (.*\n)*ValueError: .*'2\.5'"):
        metis.partition_by_metis(graph.indptr, graph.indices, np.zeros(20, dtype=np.int8), 2.5)


def test_empty_parts_are_filled_from_the_largest():
    assert fill_empty_parts(np.array([0, 0, 0, 2, 2, 0]), 5).tolist() == [0, 4, 3, 2, 2, 1]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", ">i4"])
def test_assignment_from_a_file(tmp_path, dtype):
    wanted = np.array([2, 0, 2, 0, 2], dtype=dtype)
    np.save(tmp_path / "parts.npy", wanted)
    part_id = assign(make_graph(5, [(0, 1)]), 4, str(tmp_path / "parts.npy"))
    assert part_id.dtype == np.int32 and part_id.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "array, message",
    [
        (np.array([0, 1, 0, 1]), r"expected integers \[5\].*found int64 \[4\]"),
        (np.zeros((5, 1), dtype=int), r"found int64 \[5, 1\]"),
        (np.array([0.0, 1, 0, 1, 0]), "found float64"),
        (np.array([True, False, True, False, True]), "found bool"),
        (np.array([0, 1, 0, 1, 2]), "expected parts from 0 to 1, found 0 to 2"),
        (np.array([0, 1, 0, 1, -1]), "expected parts from 0 to 1, found -1 to 1"),
        (np.array([0, 1, 0, 1, None], dtype=object), "not a readable .npy file"),
    ],
)
def test_a_wrong_assignment_is_refused(tmp_path, array, message):
    np.save(tmp_path / "parts.npy", array, allow_pickle=True)
    with pytest.raises(UserError, match=message) as error:
        assign(make_graph(5, [(0, 1)]), 2, str(tmp_path / "parts.npy"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_damaged_assignment_is_refused(tmp_path, content):
    (tmp_path / "parts.npy").write_bytes(content)
    with pytest.raises(UserError, match="not a readable .npy file"):
        assign(make_graph(5, [(0, 1)]), 2, str(tmp_path / "parts.npy"))


def test_an_archive_for_an_assignment_is_refused(tmp_path):
    with open(tmp_path / "parts.npy", "wb") as file:
        np.savez(file, a=np.zeros(5, dtype=int))
    with pytest.raises(UserError, match="found an .npz archive"):
        assign(make_graph(5, [(0, 1)]), 2, str(tmp_path / "parts.npy"))


@pytest.mark.parametrize(
    "num_parts, method, seed, message",
    [
        (0, "range", 1, "--parts: expected at least 1, found 0"),
        (-3, "range", 1, "--parts: expected at least 1, found -3"),
        (6, "metis", 1, "found 6 parts for 5 nodes"),
        (2, "spectral", 1, "--method: expected metis, random, range .* found 'spectral'"),
        (2, "missing.npy", 1, "missing.npy: no such file"),
        (2, "random", -1, "--seed"),
    ],
)
def test_wrong_input_is_refused(num_parts, method, seed, message):
    with pytest.raises(UserError, match=message):
        assign(make_graph(5, [(0, 1)]), num_parts, method, seed)
