import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glpilot.data.graph import Graph, read_graph
from helpers.command_line import run_command


def write(path, text, compress=False):
    path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())
    return path


def import_graph(folder, *arguments, edges="src,dst\n0,1\n1,2\n2,3\n", labels=None) -> tuple[Graph, str, str]:
    """Import, expect success, and read the graph back; returns it with what was printed."""
    given = ["--edges", write(folder / "edges.csv", edges)]
    if labels is not None:
        given += ["--labels", write(folder / "labels.csv", labels)]
    code, out, err = run_command("import", *given, *arguments, "--force", folder / "graph.h5")
    assert code == 0, err
    return read_graph(folder / "graph.h5")[0], out, err


def in_edges(graph: Graph) -> set:
    """{(source id, target id)} in the users' ids."""
    ids = graph.nodes.original_ids.tolist()
    return {
        (ids[source], ids[node])
        for node in range(graph.num_nodes)
        for source in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    }


def test_undirected_simple_graph_and_its_summary(tmp_path):
    graph, out, err = import_graph(
        tmp_path, edges="src,dst\n5,7\n7,5\n5,7\n9,9\n7,-2\n", labels="node,label\n5,b\n-2,a\n9,b\n5,b\n"
    )
    assert graph.nodes.original_ids.tolist() == [-2, 5, 7, 9]
    assert in_edges(graph) == {(5, 7), (7, 5), (7, -2), (-2, 7)}
    assert not graph.is_directed and graph.indices.dtype == np.int32
    assert graph.nodes.class_names == ["a", "b"]
    assert graph.nodes.labels.tolist() == [0, 1, -1, 1] and graph.nodes.labels.dtype == np.int32
    assert out.splitlines()[:7] == [
        "read       edges from edges.csv: 5 rows; source 'src', target 'dst' (by the header); integer ids",
        "read       labels from labels.csv: 4 rows; node 'node', label 'label' (by the header); integer ids",
        "unlabelled 1 nodes",
        "nodes      4, 1 without an edge",
        "edges      2, undirected, each stored in both directions",
        "dropped    2 duplicate edges, 1 self-loops (an edge and its reverse are the same)",
        "classes    2, known of 3 nodes",
    ]
    assert err == ""


def test_directed_keeps_directions(tmp_path):
    graph, out, _ = import_graph(tmp_path, "--directed", edges="src,dst\n1,2\n2,1\n3,1\n3,1\n")
    assert in_edges(graph) == {(1, 2), (2, 1), (3, 1)} and graph.is_directed
    assert "edges      3, directed\ndropped    1 duplicate edges, 0 self-loops\n" in out


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(-5, 300), st.integers(-5, 300)), min_size=1, max_size=30), st.booleans())
def test_same_edges_as_a_set(tmp_path, edges, as_strings):
    ids = [tuple(f"n{v}" if as_strings else v for v in edge) for edge in edges]
    graph, _, _ = import_graph(tmp_path, edges="src,dst\n" + "".join(f"{u},{v}\n" for u, v in ids))
    assert in_edges(graph) == {pair for u, v in ids if u != v for pair in ((u, v), (v, u))}
    assert graph.nodes.original_ids.tolist() == sorted({v for edge in ids for v in edge})


@pytest.mark.parametrize(
    "text",
    [
        "u,v\n1,2\n2,3\n",
        "weight,dst,src\n0.5,2,1\n0.5,3,2\n",
        "Source;Target\n1;2\n2;3\n",
        "src\tdst\n1\t2\n2\t3\n",
        '\ufeffsrc,dst\r\n1, 2\r\n\r\n"2" ,3\r\n',
        "src,dst\n1,2\n2,3",
        "src,dst,when\n01,2,x\n+2,3,\n",
    ],
)
@pytest.mark.parametrize("compress", [False, True])
def test_forms_of_csv(tmp_path, text, compress):
    path = write(tmp_path / "edges.txt", text, compress)
    code, _, err = run_command("import", "--edges", path, "--directed", tmp_path / "graph.h5")
    assert code == 0, err
    assert in_edges(read_graph(tmp_path / "graph.h5")[0]) == {(1, 2), (2, 3)}


def test_string_ids(tmp_path):
    graph, _, _ = import_graph(tmp_path, edges="src,dst\nbé,a\nNA,a\n1.5,null\n", labels="node,label\nNA,x\nlone,y\n")
    assert graph.nodes.original_ids.tolist() == ["1.5", "NA", "a", "bé", "lone", "null"]
    assert graph.nodes.labels.tolist() == [-1, 0, -1, -1, 1, -1]  # a labelled node needs no edge


def test_numbers_stay_strings_on_request(tmp_path):
    graph, _, _ = import_graph(tmp_path, "--ids", "string", edges="src,dst\n007,Bond\n7,007\n")
    assert graph.nodes.original_ids.tolist() == ["007", "7", "Bond"]


def test_num_nodes_declares_nodes_without_edges(tmp_path):
    graph, out, _ = import_graph(tmp_path, "--num-nodes", 6, labels="node,label\n5,1\n")
    assert graph.nodes.original_ids.tolist() == list(range(6)) and "6, 2 without an edge" in out
    assert graph.nodes.labels.tolist() == [-1] * 5 + [0]


def test_node_ids_declare_nodes_and_the_order_of_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1], [2], [3]]))
    listed = write(tmp_path / "ids.csv", "node\nz\nlone\na\n")
    graph, _, _ = import_graph(
        tmp_path,
        "--node-ids",
        listed,
        "--features",
        tmp_path / "x.npy",
        edges="src,dst\na,z\n",
        labels="node,label\nz,c\n",
    )
    assert graph.nodes.original_ids.tolist() == ["z", "lone", "a"]
    assert graph.nodes.features.tolist() == [[1], [2], [3]] and graph.nodes.features.dtype == np.float32
    assert graph.nodes.labels.tolist() == [0, -1, -1] and in_edges(graph) == {("a", "z"), ("z", "a")}


def test_classes_are_sorted_integers_by_value(tmp_path):
    graph, _, _ = import_graph(tmp_path, labels="node,label\n0,10\n1,9\n2,-2\n3,09\n")
    assert graph.nodes.class_names == ["-2", "9", "10"]
    assert graph.nodes.labels.tolist() == [2, 1, 0, 1]


def test_several_labels_a_node(tmp_path):
    graph, out, _ = import_graph(tmp_path, labels="node,label\n0,b\n0,a\n2,b\n2,b\n")
    assert graph.nodes.labels.tolist() == [[1, 1], [0, 0], [0, 1], [0, 0]] and graph.nodes.labels.dtype == np.uint8
    assert "classes    2, several a node, known of 2 nodes" in out
    masks = graph.nodes.train_mask | graph.nodes.val_mask | graph.nodes.test_mask
    assert masks.tolist() == [True, False, True, False]
    forced, _, _ = import_graph(tmp_path, "--multilabel", labels="node,label\n0,b\n1,a\n")
    assert forced.nodes.labels.tolist() == [[0, 1], [1, 0], [0, 0], [0, 0]]


def test_split_is_of_labelled_nodes_and_by_seed(tmp_path):
    edges = "src,dst\n" + "".join(f"{v},{v + 1}\n" for v in range(99))
    labels = "node,label\n" + "".join(f"{v},{v % 3}\n" for v in range(50))
    first, out, _ = import_graph(tmp_path, "--split", "0.5,0.25,0.15", edges=edges, labels=labels)
    assert [int(m.sum()) for m in (first.nodes.train_mask, first.nodes.val_mask, first.nodes.test_mask)] == [25, 13, 7]
    assert not first.nodes.train_mask[50:].any() and "25 train, 13 validation, 7 test" in out
    again, _, _ = import_graph(tmp_path, "--split", "0.5,0.25,0.15", "--seed", 1, edges=edges, labels=labels)
    other, _, _ = import_graph(tmp_path, "--split", "0.5,0.25,0.15", "--seed", 2, edges=edges, labels=labels)
    assert (first.nodes.train_mask == again.nodes.train_mask).all()
    assert (first.nodes.train_mask != other.nodes.train_mask).any()


def test_given_masks(tmp_path):
    labels = "node,label\n0,a\n1,b\n2,a\n"
    table = write(tmp_path / "split.csv", "node,split\n2,test\n0,train\n3,valid\n1,none\n")
    graph, _, err = import_graph(tmp_path, "--masks", table, labels=labels)
    masks = (graph.nodes.train_mask, graph.nodes.val_mask, graph.nodes.test_mask)
    assert [mask.tolist() for mask in masks] == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert err == "glpilot import: warning: 1 nodes of the given split have no label, and are left out of it\n"
    np.savez(tmp_path / "m.npz", train_mask=masks[0], val_mask=np.array([0, 1, 0, 0]), test_mask=masks[2])
    graph, _, _ = import_graph(tmp_path, "--masks", tmp_path / "m.npz", labels=labels)
    assert graph.nodes.val_mask.tolist() == [False, True, False, False]


def test_arrays_of_labels_features_and_embeddings(tmp_path):
    np.save(tmp_path / "y.npy", np.array([2, -1, 0, 0]))
    np.save(tmp_path / "x.npy", np.arange(8, dtype=np.float64).reshape(4, 2))
    np.save(tmp_path / "e.npy", np.ones((4, 3), dtype=np.float16))
    graph, out, _ = import_graph(
        tmp_path, "--labels", tmp_path / "y.npy", "--features", tmp_path / "x.npy", "--embeddings", tmp_path / "e.npy"
    )
    assert graph.nodes.labels.tolist() == [1, -1, 0, 0] and graph.nodes.class_names == ["0", "2"]
    assert graph.nodes.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.nodes.embeddings.dtype == np.float32 and graph.nodes.embeddings.shape == (4, 3)
    assert "features   2 columns\nembeddings 3 columns\n" in out


def test_no_labels_is_a_warning(tmp_path):
    graph, out, err = import_graph(tmp_path)
    assert (graph.nodes.labels == -1).all() and graph.nodes.class_names == []
    assert "classes    none\nsplit      0 train" in out
    assert err.startswith("glpilot import: warning: there are no labels") and err.count("\n") == 1


def test_force_replaces(tmp_path):
    (tmp_path / "graph.h5").write_text("mine")
    import_graph(tmp_path)


def test_new_folders_are_made(tmp_path):
    edges = write(tmp_path / "edges.csv", "src,dst\n1,2\n")
    assert run_command("import", "--edges", edges, tmp_path / "new" / "er" / "graph.h5")[0] == 0


def test_starts_without_torch_dgl_and_mpi(tmp_path):
    edges = write(tmp_path / "edges.csv", "src,dst\n1,2\n")
    script = (
        "import sys; from glpilot.app.cli import main; main(); "
        "print(sorted({'torch', 'dgl', 'mpi4py', 'horovod', 'scipy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, "import", "--edges", edges, tmp_path / "graph.h5"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1] == "[]"
