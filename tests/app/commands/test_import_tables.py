"""Tables as people have them: read right, or refused in one line that says where, what and how to go on."""

import json

import h5py
import numpy as np
import pytest

from glpilot.data.graph import read_graph, write_graph
from helpers.command_line import run_command

GOOD = "src,dst\n1,2\n2,3\n3,4\n4,1\n"
RING = {(1, 2), (2, 3), (3, 4), (4, 1)}
NAMES = {("ann", "bob"), ("bob", "cid"), ("cid", "ann")}
TRIANGLE = {(1, 2), (2, 3), (3, 1)}


def run(folder, *arguments, edges=GOOD, **tables):
    """Import tables given as text or bytes; options name them as @labels. Returns exit code, stdout, stderr."""
    for name, text in {"edges": edges, **tables}.items():
        (folder / f"{name}.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    given = ["--edges", folder / "edges.csv"]
    for name, option in (("labels", "--labels"), ("masks", "--masks"), ("ids", "--node-ids")):
        given += [option, folder / f"{name}.csv"] if name in tables else []
    return run_command("import", *given, *arguments, "--directed", folder / "graph.h5")


def load(folder, *arguments, **tables):
    """Import, expect success; returns the edges in the users' ids, {id: class name or None}, and what was printed."""
    code, out, err = run(folder, *arguments, "--force", **tables)
    assert code == 0, err
    graph = read_graph(folder / "graph.h5")[0]
    nodes, ids = graph.nodes, graph.nodes.original_ids.tolist()
    targets = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    edges = {(ids[source], ids[target]) for source, target in zip(graph.indices.tolist(), targets.tolist())}
    names = [*nodes.class_names, None]  # -1: none
    return edges, {node: names[label] for node, label in zip(ids, nodes.labels.tolist())}, out


def refuse(folder, *arguments, **tables) -> str:
    """Import, expect one line and no file; returns the line."""
    code, out, err = run(folder, *arguments, **tables)
    assert (code, out, err.count("\n")) == (2, "", 1), (out, err)
    assert not list(folder.glob("*graph.h5*"))
    return err


# Whole files, each of a kind that went wrong.


@pytest.mark.parametrize(
    "text, arguments, expected",
    [
        (GOOD, (), RING),
        (",0,1\n0,11,12\n1,12,13\n2,13,14\n", ("--source", "0", "--target", "1"), {(11, 12), (12, 13), (13, 14)}),
        (",src,dst\n0,11,12\n1,12,13\n", (), {(11, 12), (12, 13)}),
        ("head,relation,tail\nann,likes,bob\nbob,likes,cid\ncid,knows,ann\n", (), NAMES),
        ("source,weight,dest\n1,5,2\n2,5,3\n3,6,4\n4,9,1\n", (), RING),
        ("1.000000000000000000e+00,2.000000000000000000e+00\n3.0e+00,1.2e+01\n", ("--no-header",), {(1, 2), (3, 12)}),
        ("ann,bob\nbob,cid\ncid,ann\n", ("--no-header",), NAMES),
        ("# made by a tool\nsrc,dst\nann,bob\nbob,cid\ncid,ann\n", (), NAMES),
        ("sep=;\nsrc;dst\nann;bob\nbob;cid\ncid;ann\n", (), NAMES),
        ('\ufeff"sep=\t"\r\nsrc\tdst\r\nann\tbob\r\n', (), {("ann", "bob")}),
        ("sep=\\t\nsrc\tdst\nann\tbob\n", (), {("ann", "bob")}),
        ("src,dst\n1e3,2\n2,1e3\n", ("--ids", "string"), {("1e3", "2"), ("2", "1e3")}),
        ("src,dst\n1,2\nSrc , dst\n2,3\nsrc,dst\n3,1\n", (), TRIANGLE),
        ("src,dst\nann,bob\nsrc,dst\nbob,cid\ncid,ann\n", (), NAMES),
        ("src,dst,w\n1.0,2.0,x\n2.0,3.00,y\n", (), {(1, 2), (2, 3)}),
        ("src,dst\n1,2\n# no\n2,3\n", ("--comment", "#"), {(1, 2), (2, 3)}),
        ("z # x\n// y\n# z\nsrc,dst\n1,2\n//\n", ("--comment", "#", "--comment", "//", "--comment", "z"), {(1, 2)}),
        ("src,dst\n#a,b\n%c,d\n", ("--comment", "none"), {("#a", "b"), ("%c", "d")}),
        ('src,dst\n"#a",b\n', (), {("#a", "b")}),
        ("src|dst\na,b|c\n", (), {("a,b", "c")}),
        ("src;dst;a,b\n1;2;3\n", (), {(1, 2)}),
        ('"src", "dst"\n"a b", "c ""d"""\n', (), {("a b", 'c "d"')}),
        ('src,dst\n5" disk,b\n', (), {('5" disk', "b")}),
        ("src, dst\nann, bob\nbob, cid\ncid, ann\n", (), NAMES),
        ("a,b,c\n1,9,2\n", ("--source", "A", "--target", "c"), {(1, 2)}),
        ("1,9,2\n", ("--no-header", "--source", "1", "--target", "3"), {(1, 2)}),
        ("1,9,2\n", ("--no-header", "--source", "3", "--target", "1"), {(2, 1)}),
        ('sep=,\na "b",c;d\n', ("--no-header",), {('a "b"', "c;d")}),
        ("dst,w,src\n1,9,2\n", ("--no-header",), {(2, 1)}),
        ("dst,w,src\n1,9,2\n", ("--no-header", "--source", "1", "--target", "3"), {(1, 2)}),
        ("src,weight,target\n1,9,2\n", (), {(1, 2)}),
        ("\n\nsrc,dst\n1,2\n\n", (), {(1, 2)}),
        ("src,dst\n\"'x'\",y\n", (), {("'x'", "y")}),
        ("src,dst\n00012,00013\n", (), {(12, 13)}),
        ("src,dst\n9007199254740993,1\n", (), {(9007199254740993, 1)}),
        ("src,dst\n+2,1\n2,3\n", (), {(2, 1), (2, 3)}),
    ],
)
def test_edges_that_are_right(tmp_path, text, arguments, expected):
    assert load(tmp_path, *arguments, edges=text)[0] == expected


WANTED = "edges.csv, line 1: expected a header with columns such as src,dst or source,target, found the columns "


@pytest.mark.parametrize(
    "text, arguments, expected",
    [
        (",0,1\n0,11,12\n", (), [WANTED + "'', '0', '1'", "--source COLUMN --target COLUMN", "--no-header"]),
        ("a,b\n1,2\n", (), [WANTED + "'a', 'b'"]),
        ("1,2\n2,3\n", (), [WANTED + "'1', '2'", "--no-header"]),
        ("1.000000000000000000e+00,2.000000000000000000e+00\n", (), [WANTED, "--no-header"]),
        ("ann,bob\nbob,cid\n", (), [WANTED + "'ann', 'bob'", "--no-header"]),
        ("src,dst,from\n1,2,3\n", (), ["'src', 'from' could each be the source", "--source COLUMN"]),
        ("src,dst,dst\n1,2,3\n", (), ["'dst', 'dst' could each be the target"]),
        ("from,dst\n1,2\n", (), ["'from' and 'dst' are no known pair"]),
        ("src,x\n1,2\n", (), [WANTED + "'src', 'x'"]),
        ("a,b\n1,2\n", ("--source", "a", "--target", "z"), ["there is no column 'z'", "'a', 'b'"]),
        ("a,b\n1,2\n", ("--source", "a", "--target", "A"), ["the column 'a' was chosen twice"]),
        ("a,b,a\n1,2,3\n", ("--source", "a", "--target", "b"), ["'a', 'a' could each be the source"]),
        (",b\n1,2\n", ("--source", "", "--target", "b"), ["--source", "name"]),
        ("1,9,2\n", ("--no-header",), ["line 1: expected 2 columns", "found 3: '1,9,2'", "--source NUMBER"]),
        ("1 2\n", ("--no-header",), ["expected 2 columns", "separated by comma, tab or semicolon", "found 1: '1 2'"]),
        ("1,9,2\n", ("--no-header", "--source", "1", "--target", "4"), ["--target '4'", "from 1 to 3"]),
        ("1,9,2\n", ("--no-header", "--source", "a", "--target", "3"), ["--source 'a'", "from 1 to 3"]),
        ("1,9,2\n", ("--no-header", "--source", "3", "--target", "3"), ["chosen twice"]),
        ("a;b,c\n", ("--no-header",), ["line 1: expected one kind of separator", "sep="]),
        ('a b "x, y"\n', ("--no-header",), ["line 1: expected one kind of separator", "a quote within a field"]),
        ("// src,dst\na,b\n", ("--no-header",), ["line 1", "is a name of a column"]),
        ("# src,dst\na,b\n", ("--no-header",), ["line 1", "--comment '#'", "--comment none"]),
        ("src,dst\na,b\n#c,d\n", (), ["line 3", "begins with '#'", "--comment '#'", "--comment none"]),
        ("src,dst\na,b\n% c\n", ("--comment", "#"), ["line 3", "--comment '%'"]),
        ("src,dst\na,b\n", ("--comment", "none", "--comment", "#"), ["--comment"]),
        ("a,b\n1,2\n", ("--source", "a", "--target", "b", "--comment", ""), ["--comment"]),
        ("x,y\na,b\nx,y\n", ("--source", "x", "--target", "y"), ["line 3", "the header again"]),
        ('src,dst\nann,"bob\nbob,cid\ndee,eve"\neve,ann\n', (), ["line 2, column 5", "quote that opens here"]),
        ('src,dst\nann,bob\n"a\nb",c\n', (), ["line 3, column 1", "quote that opens here"]),
        ('src,dst\nann,bob\n"a\r\nb",c\r\n', (), ["line 3, column 1", "quote that opens here"]),
        ('src,dst\n"Al" B,c\n', (), ["line 2, column 5", "text after a closing quote"]),
        ('src,dst\n"a"b,c\n', (), ["line 2, column 4", "text after a closing quote"]),
        ('src,dst\na\\"b,c\n', (), ["line 2, column 2", "found '\\\\\"'"]),
        ("src,dst\nann\x1b[31m,bob\n", (), ["line 2, column 4", "U+001B"]),
        ("src,dst\nann,b\0b\n", (), ["line 2, column 6", "U+0000"]),
        ("src,dst\nann,b\x7f\n", (), ["line 2, column 6", "U+007F (a control character)"]),
        ("src,dst\nann,b\x85b\n", (), ["line 2, column 6", "U+0085"]),
        ("src,dst\nann,b\u2028b\n", (), ["line 2, column 6", "U+2028 (LINE SEPARATOR)"]),
        ("src,dst\nann,b\u2029b\n", (), ["line 2, column 6", "U+2029 (PARAGRAPH SEPARATOR)"]),
        ("src,dst\nann,bob\n\ufeffsrc,dst\n", (), ["line 3, column 1", "U+FEFF"]),
        ("src,dst\rann,bob\r", (), ["line 1, column 8", "U+000D", "line feed"]),
        ("src,dst\nann,b\rob\n", (), ["line 2, column 6", "U+000D"]),
        ("src,dst\nann,bob\r", (), ["line 2, column 8", "U+000D"]),
        ("s\x1brc,dst\nann,bob\n", (), ["line 1, column 2", "U+001B"]),
        (b"src,dst\na,b\nc,\xe9\n", (), ["line 3, byte 3", "not UTF-8", "0xe9"]),
        ("src,dst\n1e3,2\n2,3\n3,1000\n", (), ["line 2", "'1e3' is not an integer", "--ids string"]),
        ("src,dst\n1e3,2e3\n", (), ["line 2", "'1e3' is not an integer"]),
        ("src,dst\n1,2\n2,1e3\n", (), ["line 3", "'1e3' is not an integer"]),
        ("src,dst\n1.0,2.0\n2,3.0\n", (), ["line 2", "'1.0' is not an integer while others are"]),
        ("src,dst\n1,2.0\n", (), ["line 2", "'2.0' is not an integer while others are"]),
        ("src,dst\n1.0,2.5\n", (), ["line 2", "'2.5' is not an integer"]),
        ("src,dst\n1.23e+03,1.24e+03\n", (), ["line 2", "'1.23e+03' is not an integer"]),
        ("src,dst\n1.0,9007199254740993.0\n", (), ["line 2", "'9007199254740993.0' is not an integer"]),
        ("src;dst\n1,0;2,0\n", (), ["line 2", "'1,0' is not an integer"]),
        ("src,dst\n1\u00a0,2\n2,3\n", (), ["line 2", "U+00A0 (NO-BREAK SPACE)", "remove it"]),
        ("src,dst\n1,2\n2\u2009000,3\n", (), ["line 3", "U+2009 (THIN SPACE)"]),
        ("src,dst\n1,2\n\u22122,3\n", (), ["line 3", "U+2212 (MINUS SIGN)"]),
        ("src,dst\n1,2\n\uff12,3\n", (), ["line 3", "U+FF12 (FULLWIDTH DIGIT TWO)"]),
        ("src,dst\nann\u00a0,bob\n", (), ["line 2", "U+00A0 (NO-BREAK SPACE)"]),
        ("src,dst\n'ann',bob\n", (), ["line 2", "'ann'", "double quotes"]),
        ('src,dst\n" ann",bob\nbob,ann\n', (), ["line 3", "' ann'", "'ann'", "blanks"]),
        ("src,dst\n007,1\n7,1\n", (), ["'7' is the same integer as '007'", "--ids string"]),
        ("src,dst\n1.0,2.0\n2.00,1.0\n", (), ["'2.0' is the same integer as '2.00'"]),
        ("src,dst\n1.,2.\n", (), ["line 2", "'1.' is not an integer"]),
        ("src,dst\n1,2,3\n2,3\n", (), ["line 2: expected 2 fields, as in the header, found 3"]),
        ("src,w,dst\n1,2,3\n2,3\n", (), ["line 3: no value for 'dst': expected 3 fields", "found 2"]),
        ("src,dst,w\n1,2,3\n2,3\n", (), ["line 3: expected 3 fields, as in the header, found 2"]),
        ("1,2\n2,3,4\n", ("--no-header",), ["line 2: expected 2 fields, as in the first row, found 3"]),
        ("\n\n# x\n", (), ["line 3: expected a header and rows"]),
        ("1,2\nsrc,dst\n", ("--no-header",), ["line 2", "'src' is not an integer"]),
    ],
)
def test_edges_that_are_refused(tmp_path, text, arguments, expected):
    line = refuse(tmp_path, *arguments, edges=text)
    assert [part for part in expected if part not in line] == [], line


@pytest.mark.parametrize(
    "text, arguments, expected",
    [
        ("node,label\n1,red\n2,blue\n3,red\n4,blue\n", (), ["red", "blue", "red", "blue"]),
        ("node,label\n1,0\n2,20000000000\n3,1\n4,0\n", (), ["0", "20000000000", "1", "0"]),
        ("node,label\n1,0\n2,-1\n3,1\n4,0\n", (), ["0", None, "1", "0"]),
        ("node,label\n1,red\n2,nan\n3,blue\n4,NA\n", (), ["red", None, "blue", None]),
        ("node,label\n1,red\n2,\n3,None\n4,NULL\n", (), ["red", None, None, None]),
        ("node,label\n1,1\n2,1.0\n3,0\n4,-1.0\n", (), ["1", "1", "0", None]),
        ("node,label\n1,red\n2,nan\n3,?\n4,-1\n", ("--unlabelled", "-1,?"), ["red", "nan", None, None]),
        ("node,label\n1,-1\n2,1\n3,1\n4,\n", ("--unlabelled=",), ["-1", "1", "1", None]),
        ("id,name,ml_target\n1,ann,0\n2,bob,1\n", ("--label", "ml_target"), ["0", "1", None, None]),
        ("1,7\n2,8\n", ("--no-header",), ["7", "8", None, None]),
        ("1,x,7\n2,y,8\n", ("--no-header", "--node", "1", "--label", "3"), ["7", "8", None, None]),
        ("1.0,red\n2.0,blue\n", ("--no-header",), ["red", "blue", None, None]),
        ("node,label\n1,red\nNODE,label\n2,blue\n", (), ["red", "blue", None, None]),
        ("# x\nlabel\tnid\n7\t1\n", (), ["7", None, None, None]),
        ("node,label\n1,10\n2,9\n3,09.0\n", (), ["10", "9", "9", None]),
    ],
)
def test_labels_that_are_right(tmp_path, text, arguments, expected):
    _, labels, out = load(tmp_path, *arguments, labels=text)
    assert [labels[node] for node in (1, 2, 3, 4)] == expected
    assert f"unlabelled {expected.count(None)} nodes" in out


@pytest.mark.parametrize(
    "text, arguments, expected",
    [
        (
            "id,name,ml_target\n1,ann,0\n",
            (),
            ["labels.csv, line 1", "such as node,label", "'id', 'name', 'ml_target'", "--node COLUMN --label COLUMN"],
        ),
        ("id,node,label\n1,1,0\n", (), ["'id', 'node' could each be the node"]),
        ("node,label,class\n1,1,0\n", (), ["'label', 'class' could each be the label"]),
        ("1,red\n2,blue\n", (), ["labels.csv, line 1", "--no-header"]),
        ("id,name\n1,red\n", ("--no-header",), ["'id' is a name of a column"]),
        ("node,label\n1,red\n1.0,blue\n", (), ["line 3", "'1.0' is not an integer"]),
        ("node,label\n1,red\n2,re\td\n3,\x07\n", (), ["line 4, column 3", "U+0007"]),
        ("node,label\n1,red\u00a0\n2,red\n", (), ["line 2", "U+00A0 (NO-BREAK SPACE)"]),
        ("node,label\n1,\n", ("--unlabelled", "-1"), ["line 2: no value for 'label'"]),
    ],
)
def test_labels_that_are_refused(tmp_path, text, arguments, expected):
    line = refuse(tmp_path, *arguments, labels=text)
    assert [part for part in expected if part not in line] == [], line


def test_masks_and_node_ids_are_found_by_name(tmp_path):
    labels = "node,label\n1,a\n2,b\n3,a\n"
    _, _, out = load(tmp_path, labels=labels, masks="fold,split,id\n9,train,1.0\n9,val,2.0\n")
    assert "split from masks.csv: 2 rows; node 'id', split 'split' (by the header); ids are integers" in out
    assert "1 train, 1 validation, 0 test" in out
    assert "such as node,split" in refuse_after(tmp_path, labels=labels, masks="1,train\n")
    _, _, out = load(
        tmp_path, "--no-header", edges="1,2\n", labels="1,a\n2,b\n", masks="1,train\n2,test\n", ids="2\n1\n"
    )
    assert "1 train, 0 validation, 1 test" in out
    assert read_graph(tmp_path / "graph.h5")[0].nodes.original_ids.tolist() == [2, 1]
    _, _, out = load(tmp_path, "--node", "name", edges="src,dst\n1,2\n", ids="rank,name\n9,2\n8,1\n")
    assert "node ids from ids.csv: 2 rows; node 'name'" in out


def refuse_after(folder, *arguments, **tables) -> str:
    (folder / "graph.h5").unlink()
    return refuse(folder, *arguments, **tables)


def test_a_column_for_nodes_goes_for_every_table(tmp_path):
    labels = "key,label\n1,a\n2,b\n"
    _, labelled, _ = load(
        tmp_path, "--node", "KEY", labels=labels, masks="split,key\ntrain,1\n", ids="key\n1\n2\n3\n4\n"
    )
    assert labelled == {1: "a", 2: "b", 3: None, 4: None}


# What is printed and kept.


def test_what_was_understood_is_printed(tmp_path):
    edges = "# made\n\nsrc,dst\n1,2\nsrc,dst\n2,1\n"
    _, _, out = load(tmp_path, "--no-header", edges=edges, labels="1,a\n2,nan\n")
    assert out.splitlines()[:3] == [
        "read       edges from edges.csv: 2 rows; source 'src', target 'dst' (by its header, which has the names "
        "that are looked for); integer ids; skipped 1 comment line, 1 blank line, 1 repeated header",
        "read       labels from labels.csv: 2 rows; node '1', label '2' (no header, columns by number); integer ids",
        "unlabelled 1 nodes; marked nan (1)",
    ]


def test_what_was_understood_is_kept_and_changes_no_hash(tmp_path):
    load(tmp_path, edges="dst,src\n1.0,2.0\n", labels="node,label\n1.0,-1\n2.0,x\n")
    with h5py.File(tmp_path / "graph.h5") as file:
        kept = json.loads(file.attrs["import"])
    assert kept["unlabelled"] == {"nodes": 1, "marks": {"-1": 1}}
    assert kept["tables"]["edges"] == {
        "file": "edges.csv",
        "columns": {"source": "src", "target": "dst"},
        "has_header": True,
        "separator": ",",
        "num_rows": 1,
        "ids": "integer, written as floats",
        "skipped": {},
        "marks": {},
    }
    graph, digest = read_graph(tmp_path / "graph.h5")
    write_graph(tmp_path / "other.h5", graph)
    assert read_graph(tmp_path / "other.h5")[1] == digest


# Arrays: the same marks and classes.


@pytest.mark.parametrize(
    "array, arguments, expected",
    [
        (np.array([0, 20_000_000_000, -1, 1]), (), ["0", "20000000000", None, "1"]),
        (np.array([0, 2**63 - 1, -(2**63), 1]), (), ["0", str(2**63 - 1), str(-(2**63)), "1"]),
        (np.array([7.0, np.nan, -1.0, 5e15]), (), ["7", None, None, "5000000000000000"]),
        (np.array([[3], [1], [-1], [1]], dtype=np.int8), (), ["3", "1", None, "1"]),
        (np.array([-1, 0, 1, 9]), ("--unlabelled", "9"), ["-1", "0", "1", None]),
        (np.array([False, True, True, False]), (), ["0", "1", "1", "0"]),
    ],
)
def test_label_arrays(tmp_path, array, arguments, expected):
    np.save(tmp_path / "y.npy", array)
    edges = "src,dst\n0,1\n1,2\n2,3\n"
    _, labels, out = load(tmp_path, "--labels", tmp_path / "y.npy", *arguments, edges=edges)
    assert list(labels.values()) == expected
    assert f"unlabelled {expected.count(None)} nodes" in out
    classes = sorted({int(name) for name in expected if name is not None})
    assert read_graph(tmp_path / "graph.h5")[0].nodes.class_names == [str(number) for number in classes]


def test_nan_that_is_no_mark_is_refused(tmp_path):
    np.save(tmp_path / "y.npy", np.array([0, np.nan]))
    line = refuse(tmp_path, "--labels", tmp_path / "y.npy", "--unlabelled", "-1", edges="src,dst\n0,1\n")
    assert "y.npy: expected class numbers, found NaN; add nan to --unlabelled" in line


def test_nan_in_zeros_and_ones_is_zero(tmp_path):
    np.save(tmp_path / "y.npy", np.array([[0, 1], [np.nan, 1]]))
    code, _, err = run(tmp_path, "--labels", tmp_path / "y.npy", edges="src,dst\n0,1\n")
    assert code == 0, err
    assert read_graph(tmp_path / "graph.h5")[0].nodes.labels.tolist() == [[0, 1], [0, 1]]
