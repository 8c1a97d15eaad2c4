"""Every mistake gets one line that names it, exit code 2, and leaves nothing behind."""

import gzip
import os

import numpy as np
import pytest

from helpers.command_line import run_command

EDGES = "src,dst\n0,1\n1,2\n2,3\n"
LABELS = "node,label\n0,a\n1,b\n2,a\n3,b\n"


@pytest.fixture
def fails(tmp_path):
    """Import given files, and expect one line that contains `expected`. Files: name → text, bytes or array."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()

    def check(files: dict, expected: str, *arguments, edges: bool = True) -> None:
        for name, content in files.items():
            path = tmp_path / "in" / name
            if isinstance(content, dict):
                np.savez(path, **content)
            elif isinstance(content, np.ndarray):
                np.save(path, content)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        options = [str(tmp_path / "in" / argument) if argument in files else argument for argument in arguments]
        if edges:
            name = next((name for name in files if name.startswith("edges")), "edges.csv")
            (tmp_path / "in" / name).exists() or (tmp_path / "in" / name).write_text(EDGES)
            options += ["--edges", tmp_path / "in" / name]
        code, out, err = run_command("import", *options, tmp_path / "out" / "graph.h5")
        assert (code, out) == (2, "")
        assert err.count("\n") == 1 and err.endswith("\n") and err.startswith("glpilot import: ")
        assert expected in err
        assert list((tmp_path / "out").iterdir()) == []

    return check


@pytest.mark.parametrize(
    "text, expected",
    [
        ("src,dst\n0,1\n1\n2,3\n", "edges.csv, line 3: no value for 'dst'"),
        ("src,dst\n0,1\n\n1,\n", "edges.csv, line 4: no value for 'dst'"),
        ("src,dst\n0,1\n,1\n", "edges.csv, line 3: no value for 'src'"),
        ("src,dst\na,b\na,  \n", "edges.csv, line 3: no value for 'dst'"),
        ("src,dst\n0,1\n1,x\n", "edges.csv, line 3: the id 'x' is not an integer while others are"),
        (
            "src,dst\n9223372036854775807,0\n1,9223372036854775808\n",
            "line 3: the id '9223372036854775808' does not fit 64",
        ),
        ("src,dst\n9223372036854775808,18446744073709551615\n", "line 2: the id '9223372036854775808' does not fit 64"),
        ("src,dst\n9007199254740993.0,1\n", "line 2: the id '9007199254740993.0' is not an integer"),
        ("src,dst\n0,1\n1," + "7" * 5000 + "\n", "line 3: the id '777"),
        ("src,dst\n0,1\n1,1.5\n", "edges.csv, line 3: the id '1.5' is not an integer while others are"),
        ("src,dst\n0,1\n1,nan\n", "edges.csv, line 3: the id 'nan' is not an integer while others are"),
        ('src,dst\n"a\nb",c\n1,c\n', "edges.csv, line 2, column 1: expected fields that are plain"),
        ("src,dst\n0,99999999999999999999\n", "edges.csv, line 2: the id '99999999999999999999' does not fit 64 bits"),
        ("src,dst\n0,1\n1,2,3\n", "edges.csv, line 3: expected 2 fields, as in the header, found 3"),
        ("src,dst\n0,1,2\n", "edges.csv, line 2: expected 2 fields, as in the header, found 3"),
        (
            'src,dst\n"0,1\n',
            "edges.csv, line 2, column 1: expected fields that are plain, or in double quotes on one line",
        ),
        ("", "edges.csv: the file is empty"),
        ("\n", "edges.csv, line 1: expected a header"),
        ("src,dst\n", "there is a header but no row below it"),
        ("src,dst\n\n\n", "there is a header but no row below it"),
        ("0,1\n1,2\n", "edges.csv, line 1: expected a header with columns such as src,dst or source,target, found"),
        ("a,b\nb,c\nc,a\n", "found the columns 'a', 'b'; choose with --source"),
        ("# Nodes: 3\n0\t1\n", "edges.csv, line 2: expected a header"),
        ("src\n0\n", "expected a header with columns such as src,dst or source,target, found the columns 'src'"),
        (b"src,dst\n\xff\xfe,1\n", "not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "not UTF-8 text"),
        (b"\x7fELF\x00\x00\x01\x02\n1,2\n", "binary data"),
        (np.random.default_rng(0).bytes(5000), "not UTF-8 text"),
    ],
)
def test_edges(fails, text, expected):
    fails({"edges.csv": text}, expected)


@pytest.mark.parametrize(
    "content, expected",
    [
        (gzip.compress(EDGES.encode() * 1000)[:-9], "edges.csv.gz: a truncated or damaged gzip file"),
        (gzip.compress(EDGES.encode())[:12], "edges.csv.gz: a truncated or damaged gzip file"),
        (gzip.compress(EDGES.encode())[:-8] + bytes(8), "edges.csv.gz: a truncated or damaged gzip file"),
        (gzip.compress(b""), "edges.csv.gz: the file is empty"),
        (b"", "edges.csv.gz: the file is empty"),
        (EDGES.encode(), "edges.csv.gz: not a gzip file"),
    ],
)
def test_gzip(fails, content, expected):
    fails({"edges.csv.gz": content}, expected)


def test_declared_nodes(fails):
    fails({}, "edges.csv, line 4: no node has the id '3'; expected one of 0 … 2, by --num-nodes", "--num-nodes", "3")
    fails({"edges.csv": "src,dst\n0,1\n-1,2\n"}, "line 3: no node has the id '-1'", "--num-nodes", "3")
    fails({"edges.csv": "src,dst\n0,1\n1,x\n"}, "line 3: the id 'x' is not an integer", "--num-nodes", "3")
    fails(
        {"edges.csv": EDGES, "ids.csv": "node\n0\n1\n2\n"},
        "line 4: no node has the id '3'; expected one of those listed in",
        "--node-ids",
        "ids.csv",
    )
    fails({"ids.csv": "node\n0\n1\n1\n"}, "the id '1' is listed twice", "--node-ids", "ids.csv")
    fails({"ids.csv": "node\n"}, "no row below", "--node-ids", "ids.csv")
    for number in ("0", "-3", "9999999999999"):
        fails({}, "expected 1 … 3,037,000,499 nodes", "--num-nodes", number)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("node,label\n0,a\n9,b\n", "labels.csv, line 3: no node has the id '9'; expected an id that occurs in"),
        ("node,label\n0,a\nx,b\n", "labels.csv, line 3: the id 'x' is not an integer"),
        ("node,label\n,a\n", "labels.csv, line 2: no value for 'node'"),
        ("node\n0\n", "expected a header with columns such as node,label"),
        ("node,label\n", "no row below"),
        ("", "labels.csv: the file is empty"),
        ("0,a\n1,b\n", "labels.csv, line 1: expected a header"),
        (b"node,label\n0,\xff\n", "not UTF-8"),
    ],
)
def test_labels(fails, text, expected):
    fails({"labels.csv": text}, expected, "--labels", "labels.csv")


def test_labels_of_other_names(fails):
    files = {"edges.csv": "src,dst\na,b\n", "labels.csv": "node,label\nA,x\nB,y\n"}
    fails(files, "labels.csv: none of its nodes has an edge", "--labels", "labels.csv")


@pytest.mark.parametrize(
    "array, expected",
    [
        (np.zeros(3, dtype=int), "expected numbers of shape [4]"),
        (np.array([0.5, 0, 1, 1]), "expected class numbers, found 0.5"),
        (np.array(["a", "b", "c", "d"]), "expected numbers of shape [4]"),
        (np.array([0, 1, np.inf, 2**40]), "expected class numbers, found an infinite one"),
        (np.full((4, 2), 3), "found other values"),
    ],
)
def test_label_array(fails, array, expected):
    fails({"y.npy": array}, expected, "--labels", "y.npy")


@pytest.mark.parametrize("option", ["--features", "--embeddings"])
@pytest.mark.parametrize(
    "array, expected",
    [
        (np.zeros((3, 2)), "expected shape [4, columns], a row a node, found [3, 2]"),
        (np.zeros(4), "found [4]"),
        (np.zeros((4, 0)), "found [4, 0]"),
        (np.zeros((4, 2), dtype=complex), "expected numbers, found complex128"),
        (np.full((4, 2), "a"), "expected numbers, found <U1"),
        (np.array([[1.0], [1.0], [np.nan], [1.0]]), "row 2 has a value that is NaN, infinite or too large"),
        (np.array([[1.0], [1e300], [1.0], [1.0]]), "row 1 has a value that is NaN, infinite or too large"),
        (np.array([[{}], [1], [1], [1]], dtype=object), "not a readable .npy file of numbers"),
        (b"junk", "not a readable .npy file of numbers"),
        (b"", "not a readable .npy file of numbers"),
        (b"\x93NUMPY\x01\x00", "not a readable .npy file of numbers"),
    ],
)
def test_rows(fails, option, array, expected):
    fails({"x.npy": array}, expected, option, "x.npy")


def test_rows_in_an_unknown_order(fails):
    files = {"edges.csv": "src,dst\n1,5\n", "x.npy": np.zeros((2, 1)), "y.npy": np.zeros(2, dtype=int)}
    for option, name in (("--features", "x.npy"), ("--embeddings", "x.npy"), ("--labels", "y.npy")):
        fails(files, "give --node-ids FILE with the ids in the order of the rows", option, name)


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("m.csv", "node,split\n0,train\n1,trian\n", "m.csv, line 3: expected train, val, test or none, found 'trian'"),
        ("m.csv", "node,split\n0,train\n9,val\n", "m.csv, line 3: no node has the id '9'"),
        ("m.csv", "node,split\n0,train\n0,val\n", "1 nodes are in more than one of train, validation and test"),
        ("m.npz", {"train_mask": np.ones(4, bool), "val_mask": np.zeros(4, bool)}, "test_mask is missing"),
        (
            "m.npz",
            {f"{part}_mask": np.ones(4, bool) for part in ("train", "val", "test")},
            "4 nodes are in more than one",
        ),
        ("m.npz", {f"{part}_mask": np.zeros(5, bool) for part in ("train", "val", "test")}, "booleans of shape [4]"),
        ("m.npz", {f"{part}_mask": np.array([{}] * 4) for part in ("train", "val", "test")}, "cannot be read"),
        ("m.npz", b"PK junk", "not a readable .npz file"),
    ],
)
def test_masks(fails, name, content, expected):
    fails({name: content, "labels.csv": LABELS}, expected, "--masks", name, "--labels", "labels.csv")


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("--split", "0.6,0.3,0.2"), "the fractions sum to 1.1, more than 1"),
        (("--split=-0.1,0.5,0.5",), "a fraction is negative"),
        (("--split", "0.6,0.2"), "expected three fractions"),
        (("--split", "a,b,c"), "expected three fractions"),
        (("--seed", "-1"), "--seed -1: expected 0 or more"),
        (("--root", "x"), "--root goes with --ogb, not with --edges"),
        (("--npz", "x.npz"), "expected one of --edges, --npz, --dgl and --ogb, found --edges and --npz"),
        (("--num-nodes", "3", "--node-ids", "x"), "give one of them"),
        (("--num-nodes", "3", "--ids", "string"), "give --node-ids FILE"),
        (("--split", "1,0,0", "--masks", "x"), "give one of them"),
        (("--masks", "x.csv"), "--masks needs --labels"),
        (("--multilabel",), "--multilabel goes with a CSV file in --labels"),
        (("--labels", "absent.csv"), "absent.csv: no such file"),
        (("--labels", "."), "is a folder"),
        (("--features", "absent.npy"), "absent.npy: no such file"),
    ],
)
def test_options(fails, arguments, expected):
    fails({}, expected, *arguments)


def test_no_source(fails):
    fails({}, "expected one of --edges, --npz, --dgl and --ogb, found none of them", edges=False)
    fails({}, "absent.csv: no such file", "--edges", "absent.csv", edges=False)
    fails({}, "--num-nodes goes with --edges, not with --npz", "--npz", "x", "--num-nodes", "3", edges=False)


def test_output_exists_before_any_work(tmp_path):
    (tmp_path / "graph.h5").write_text("mine")
    code, _, err = run_command("import", "--edges", tmp_path / "absent.csv", tmp_path / "graph.h5")
    assert (code, err.count("\n")) == (2, 1) and "exists already" in err
    assert (tmp_path / "graph.h5").read_text() == "mine"


def test_output_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text(EDGES)
    command = ("import", "--edges", tmp_path / "edges.csv")
    code, _, err = run_command(*command, tmp_path / "edges.csv" / "graph.h5")
    assert (code, err.count("\n")) == (2, 1) and "edges.csv is not a folder" in err
    code, _, err = run_command(*command, tmp_path)
    assert (code, err.count("\n")) == (2, 1) and "is a folder; expected the name of a file" in err
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    code, _, err = run_command(*command, tmp_path / "graph.h5")
    assert (code, err.count("\n")) == (2, 1) and "no permission to write" in err
    assert [item.name for item in tmp_path.iterdir()] == ["edges.csv"]


def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text(EDGES)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run_command("import", "--edges", tmp_path / "edges.csv", tmp_path / "graph.h5")
    assert (code, err.count("\n")) == (2, 1) and "No space left on device" in err
    assert [item.name for item in tmp_path.iterdir()] == ["edges.csv"]


@pytest.mark.parametrize("indptr", [[0, -5, 3, 5, 6, 7, 14], [0, 5, 3, 5, 6, 7, 14], [0, -500000, 3, 5, 6, 7, 14]])
def test_sparse_matrix_with_pointers_astray(fails, tmp_path, indptr):
    """SciPy's conversion would follow them out of its memory."""
    arrays = dict(format=np.array(b"csr"), shape=np.array([6, 6]), data=np.ones(14), indices=np.arange(14) % 6)
    fails({"m.npz": dict(arrays, indptr=np.array(indptr))}, "not a sparse matrix", "--npz", "m.npz", edges=False)


def test_a_name_that_is_too_long(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    code, _, err = run_command("import", "--edges", tmp_path / "edges.csv", tmp_path / ("x" * 300))
    assert code == 2 and err.count("\n") == 1 and "xxx" in err
