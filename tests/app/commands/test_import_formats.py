"""SciPy, DGL and OGB inputs: what they hold is what the graph holds, and damage is one line."""

import gzip
import os

import numpy as np
import pytest
import scipy.sparse

from glpilot.data.graph import read_graph
from helpers.command_line import run_command

SRC, DST = np.array([0, 1, 1, 4]), np.array([1, 0, 2, 4])
UNDIRECTED = {(0, 1), (1, 0), (1, 2), (2, 1)}
DIRECTED = {(0, 1), (1, 0), (1, 2)}


def import_graph(folder, *arguments):
    code, _, err = run_command("import", *arguments, "--force", folder / "graph.h5")
    assert code == 0, err
    return read_graph(folder / "graph.h5")[0]


def fail(folder, *arguments) -> str:
    before = sorted(folder.rglob("*"))
    code, out, err = run_command("import", *arguments, folder / "graph.h5")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sorted(folder.rglob("*")) == before
    return err


def pairs(graph) -> set:
    targets = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    return set(zip(graph.indices.tolist(), targets.tolist()))


# SciPy


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
def test_scipy(tmp_path, layout):
    dense = np.zeros((5, 5))
    dense[SRC, DST] = 0.5
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.coo_matrix(dense).asformat(layout))
    graph = import_graph(tmp_path, "--npz", tmp_path / "a.npz", "--directed")
    assert pairs(graph) == DIRECTED and graph.nodes.original_ids.tolist() == [0, 1, 2, 3, 4]
    assert pairs(import_graph(tmp_path, "--npz", tmp_path / "a.npz")) == UNDIRECTED


def test_scipy_with_labels_and_zeros(tmp_path):
    matrix = scipy.sparse.csr_matrix((np.array([1, 0, 1, 1]), (SRC, DST)), shape=(5, 5))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    (tmp_path / "labels.csv").write_text("node,label\n3,x\n")
    graph = import_graph(tmp_path, "--npz", tmp_path / "a.npz", "--directed", "--labels", tmp_path / "labels.csv")
    assert pairs(graph) == {(0, 1), (1, 2)} and graph.nodes.labels.tolist() == [-1, -1, -1, 0, -1]
    (tmp_path / "graph.h5").unlink()
    (tmp_path / "labels.csv").write_text("node,label\n5,x\n")
    err = fail(tmp_path, "--npz", tmp_path / "a.npz", "--labels", tmp_path / "labels.csv")
    assert "line 2: no node has the id '5'; expected one of 0 … 4" in err


def test_scipy_errors(tmp_path):
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, scipy.sparse.eye(4, 5))
    assert "expected a square matrix, found shape [4, 5]" in fail(tmp_path, "--npz", path)
    scipy.sparse.save_npz(path, scipy.sparse.coo_matrix((0, 0)))
    assert "expected a square matrix" in fail(tmp_path, "--npz", path)
    np.savez(path, x=np.ones(3))
    assert "not a sparse matrix" in fail(tmp_path, "--npz", path)
    np.savez(path, format=b"csr", data=np.ones(1), indices=np.array([9]), indptr=np.array([0, 1, 1]), shape=(2, 2))
    assert "a.npz: " in fail(tmp_path, "--npz", path)
    np.savez(path, format=b"coo", data=np.array([{}]), row=np.array([0]), col=np.array([0]), shape=(2, 2))
    assert "not a sparse matrix" in fail(tmp_path, "--npz", path)  # Python objects would have to be unpickled
    scipy.sparse.save_npz(path, scipy.sparse.random(50, 50, 0.2))
    path.write_bytes(path.read_bytes()[:-40])
    assert "not a sparse matrix" in fail(tmp_path, "--npz", path)
    path.write_bytes(b"junk")
    assert "not a sparse matrix" in fail(tmp_path, "--npz", path)
    assert "no such file" in fail(tmp_path, "--npz", tmp_path / "absent.npz")


# DGL


@pytest.fixture
def dgl():
    os.environ.setdefault("DGLBACKEND", "pytorch")
    return pytest.importorskip("dgl")


def test_dgl(tmp_path, dgl):
    import torch

    graph = dgl.graph((SRC, DST), num_nodes=5)
    graph.ndata["label"] = torch.tensor([2, -1, 0, 1, 0])
    graph.ndata["feat"] = torch.arange(10.0).reshape(5, 2).double()
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        graph.ndata[name] = torch.arange(5) == number
    dgl.save_graphs(str(tmp_path / "g.bin"), [graph])
    graph = import_graph(tmp_path, "--dgl", tmp_path / "g.bin", "--directed")
    assert pairs(graph) == DIRECTED
    assert graph.nodes.labels.tolist() == [2, -1, 0, 1, 0] and graph.nodes.class_names == ["0", "1", "2"]
    assert graph.nodes.features.tolist() == np.arange(10).reshape(5, 2).tolist()
    assert np.flatnonzero(graph.nodes.train_mask).tolist() == [0]
    assert not graph.nodes.val_mask.any()  # node 1 has no label
    assert np.flatnonzero(graph.nodes.test_mask).tolist() == [2]
    own_split = import_graph(tmp_path, "--dgl", tmp_path / "g.bin", "--split", "1,0,0")
    assert own_split.nodes.train_mask.tolist() == [True, False, True, True, True]
    assert pairs(own_split) == UNDIRECTED


def test_dgl_several_labels_and_int32_ids(tmp_path, dgl):
    import torch

    graph = dgl.graph((SRC, DST), num_nodes=5, idtype=torch.int32)
    graph.ndata["labels"] = torch.eye(5)[:, :3]
    dgl.save_graphs(str(tmp_path / "g.bin"), graph)
    graph = import_graph(tmp_path, "--dgl", tmp_path / "g.bin")
    assert graph.nodes.is_multilabel and graph.nodes.labels.tolist() == np.eye(5, dtype=int)[:, :3].tolist()
    assert pairs(graph) == UNDIRECTED
    assert not (graph.nodes.train_mask | graph.nodes.val_mask | graph.nodes.test_mask)[3:].any()


def test_dgl_errors(tmp_path, dgl):
    import torch

    path = tmp_path / "g.bin"
    graph = dgl.graph((SRC, DST), num_nodes=5)
    dgl.save_graphs(str(path), [graph, graph])
    assert "expected one graph, found 2" in fail(tmp_path, "--dgl", path)
    dgl.save_graphs(str(path), dgl.heterograph({("a", "x", "b"): (SRC, DST), ("b", "y", "a"): (DST, SRC)}))
    assert "only homogeneous graphs are supported, this one has 2 node types" in fail(tmp_path, "--dgl", path)
    graph.ndata["train_mask"] = torch.ones(5, 10, dtype=torch.bool)
    dgl.save_graphs(str(path), graph)
    assert "'train_mask': expected booleans of shape [5], found uint8 [5, 10]" in fail(tmp_path, "--dgl", path)
    del graph.ndata["train_mask"]
    graph.ndata["feat"] = torch.full((5, 2), float("nan"))
    dgl.save_graphs(str(path), graph)
    assert "'feat': row 0 has a value that is NaN" in fail(tmp_path, "--dgl", path)
    intact = path.read_bytes()
    for length in range(0, len(intact) - 200, 97):
        path.write_bytes(intact[:length])
        assert "g.bin: " in fail(tmp_path, "--dgl", path)
    path.write_bytes(b"junk" * 100)
    assert "not a graph file of dgl.save_graphs" in fail(tmp_path, "--dgl", path)
    assert "no such file" in fail(tmp_path, "--dgl", tmp_path / "absent.bin")


# OGB


def write_gzip(path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(str(value) for value in np.atleast_1d(row)) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def ogb(tmp_path):
    """The layout of ogbn-arxiv, with five nodes."""
    folder = tmp_path / "root" / "ogbn_tiny"
    write_gzip(folder / "raw" / "edge.csv.gz", np.stack((SRC, DST), axis=1))
    write_gzip(folder / "raw" / "num-node-list.csv.gz", [5])
    write_gzip(folder / "raw" / "num-edge-list.csv.gz", [4])
    write_gzip(folder / "raw" / "node-label.csv.gz", [3, 0, 1, 1, 0])
    write_gzip(folder / "raw" / "node-feat.csv.gz", [[-0.5, 1e-3], [1, 2], [3, 4], [5, 6], [7, 8]])
    for part, nodes in (("train", [0, 4]), ("valid", [1]), ("test", [3])):
        write_gzip(folder / "split" / "time" / f"{part}.csv.gz", nodes)
    return folder


def import_ogb(tmp_path, *arguments):
    return import_graph(tmp_path, "--ogb", "ogbn-tiny", "--root", tmp_path / "root", *arguments)


def check_ogb(graph):
    assert pairs(graph) == UNDIRECTED
    assert np.flatnonzero(graph.nodes.train_mask).tolist() == [0, 4]
    assert np.flatnonzero(graph.nodes.val_mask).tolist() == [1]
    assert np.flatnonzero(graph.nodes.test_mask).tolist() == [3]


def test_ogb(tmp_path, ogb):
    graph = import_ogb(tmp_path)
    check_ogb(graph)
    assert graph.nodes.labels.tolist() == [2, 0, 1, 1, 0] and graph.nodes.class_names == ["0", "1", "3"]
    assert np.allclose(graph.nodes.features[0], [-0.5, 1e-3])
    assert pairs(import_ogb(tmp_path, "--directed")) == DIRECTED
    assert import_ogb(tmp_path, "--split", "1,0,0").nodes.train_mask.all()


def test_ogb_several_labels_without_features(tmp_path, ogb):
    write_gzip(ogb / "raw" / "node-label.csv.gz", np.eye(5, dtype=int)[:, :4] + np.eye(5, 4, 1, dtype=int))
    (ogb / "raw" / "node-feat.csv.gz").unlink()
    graph = import_ogb(tmp_path)
    assert graph.nodes.labels.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert graph.nodes.features is None and not graph.nodes.train_mask[4]


def test_ogb_binary(tmp_path, ogb):
    for path in (ogb / "raw").glob("*.csv.gz"):
        path.unlink()
    np.savez(
        ogb / "raw" / "data.npz",
        edge_index=np.stack((SRC, DST)),
        num_nodes_list=np.array([5]),
        num_edges_list=np.array([4]),
        node_feat=np.ones((5, 3), dtype=np.float16),
        edge_feat=np.array(None),
    )
    np.savez(ogb / "raw" / "node-label.npz", node_label=np.array([[1], [0], [np.nan], [2], [0]], dtype=np.float32))
    graph = import_ogb(tmp_path)
    check_ogb(graph)
    assert graph.nodes.labels.tolist() == [1, 0, -1, 2, 0] and graph.nodes.features.shape == (5, 3)


@pytest.mark.parametrize(
    "name, rows, expected",
    [
        ("raw/edge.csv.gz", [[0, 1], [1, 5]], "an edge ends outside of the 5 nodes"),
        ("raw/edge.csv.gz", ["0,1", "x,2"], "edge.csv.gz: expected 2 columns of integers"),
        ("raw/num-node-list.csv.gz", [3, 2], "expected one graph"),
        ("raw/node-label.csv.gz", [1, 2], "node-label.csv.gz: expected numbers of shape [5]"),
        ("raw/node-label.csv.gz", ["a"] * 5, "node-label.csv.gz: expected numbers only"),
        ("raw/node-feat.csv.gz", [[1, 2]] * 4 + [["", 2]], "node-feat.csv.gz: row 4 has a value that is NaN"),
        ("split/time/train.csv.gz", [0, 1], "1 nodes are in more than one"),
        ("split/time/train.csv.gz", [7], "expected nodes in 0 … 4"),
        ("split/other/train.csv.gz", [0], "expected the folder of one splitting scheme, found other, time"),
        ("raw/triplet-type-list.csv.gz", ["a,b,c"], "only homogeneous graphs are supported"),
    ],
)
def test_ogb_errors(tmp_path, ogb, name, rows, expected):
    write_gzip(ogb / name, rows)
    assert expected in fail(tmp_path, "--ogb", "ogbn-tiny", "--root", tmp_path / "root")


def test_ogb_missing_or_truncated(tmp_path, ogb):
    arguments = ("--ogb", "ogbn-tiny", "--root", tmp_path / "root")
    path = ogb / "raw" / "edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-5])
    assert "edge.csv.gz: a truncated or damaged gzip file" in fail(tmp_path, *arguments)
    path.unlink()
    assert "edge.csv.gz: no such file" in fail(tmp_path, *arguments)
    assert "no OGB data set 'ogbn-other' there" in fail(tmp_path, "--ogb", "ogbn-other", "--root", tmp_path / "root")
