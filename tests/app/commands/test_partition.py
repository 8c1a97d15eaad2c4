import argparse
import subprocess
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest

from glpilot.app.commands import partition
from glpilot.data import schema
from glpilot.data.errors import UserError
from glpilot.data.graph import graph_hash, write_graph
from glpilot.partition.book import read_book
from helpers.graphs import make_graph, planted_graph


def run(*arguments) -> int:
    parser = argparse.ArgumentParser()
    partition.add_arguments(parser)
    return partition.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def graph(tmp_path):
    graph = planted_graph(120)
    write_graph(tmp_path / "graph.h5", graph)
    return graph


def test_prints_what_it_stores(tmp_path, graph, capfd):
    assert run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 3) == 0
    book = read_book(tmp_path / "parts")
    out, err = capfd.readouterr()
    assert (book.method, book.num_parts, book.graph_hash) == ("metis", 3, graph_hash(graph))
    assert f"edge cut      {book.edge_cut:,} of {graph.num_edges // 2:,} undirected edges" in out
    assert f"replication   {book.replication:.3f}" in out
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["0", "1", "2"]
    assert err == "" and "hint" not in out  # no bars where nobody looks


def test_keeps_the_name_of_the_assignment_file(tmp_path, graph):
    np.save(tmp_path / "mine.npy", np.arange(120) % 2)
    run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2, "--method", tmp_path / "mine.npy")
    assert read_book(tmp_path / "parts").method == "mine.npy"


def test_hints_at_parts_without_training_nodes(tmp_path, capsys):
    graph = make_graph(6, [(0, 1), (2, 3), (4, 5)])
    for is_training, expected in (
        ([1, 1, 0, 0, 1, 0], "own no training node: 1;"),
        ([0] * 6, "no node of the graph is in the training split"),
    ):
        nodes = replace(graph.nodes, train_mask=np.array(is_training, dtype=bool))
        write_graph(tmp_path / "graph.h5", replace(graph, nodes=nodes), force=True)
        run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 3, "--method", "range", "--force")
        assert expected in capsys.readouterr().out
    np.save(tmp_path / "parts.npy", np.zeros(6, dtype=int))
    nodes = replace(graph.nodes, train_mask=np.ones(6, dtype=bool))
    write_graph(tmp_path / "graph.h5", replace(graph, nodes=nodes), force=True)
    run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2, "--method", tmp_path / "parts.npy", "--force")
    assert "own no node: 1;" in capsys.readouterr().out


def test_the_same_command_gives_the_same_parts(tmp_path, graph):
    for name in ("a", "b"):
        run(tmp_path / "graph.h5", tmp_path / name, "--parts", 3, "--method", "random")
    assert read_book(tmp_path / "a") == read_book(tmp_path / "b")


@pytest.mark.parametrize(
    "change, message",
    [
        (["--parts", "0"], "--parts"),
        (["--parts", "121"], "121 parts for 120 nodes"),
        (["--method", "graph"], "--method"),
        (["--method", "absent.npy"], "absent.npy: no such file"),
    ],
)
def test_a_wrong_option_leaves_nothing(tmp_path, graph, change, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2, *change)
    assert not (tmp_path / "parts").exists()


def test_the_old_parts_outlive_a_wrong_option(tmp_path, graph):
    run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2, "--method", "range")
    book = read_book(tmp_path / "parts")
    with pytest.raises(UserError):
        run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2, "--method", "absent.npy", "--force")
    assert read_book(tmp_path / "parts") == book


def remove(path):
    path.unlink()


def damage_end(path):
    path.write_bytes(path.read_bytes()[:-5000])


def damage_kind(path):
    path.write_text("src,dst\n1,2\n")


def damage_attribute(path):
    with h5py.File(path, "a") as file:
        del file.attrs[schema.DIRECTED]


def damage_dataset(path):
    with h5py.File(path, "a") as file:
        del file[schema.LABELS]


def damage_ids(path):
    with h5py.File(path, "a") as file:
        file[schema.INDICES][3] = 120


def damage_length(path):
    with h5py.File(path, "a") as file:
        file[schema.INDPTR][120] += 1


def damage_order(path):
    with h5py.File(path, "a") as file:
        file[schema.INDPTR][3] = 0


@pytest.mark.parametrize(
    "damage",
    [
        remove,
        damage_end,
        damage_kind,
        damage_attribute,
        damage_dataset,
        damage_ids,
        damage_length,
        damage_order,
    ],
)
def test_a_damaged_graph_is_refused(tmp_path, graph, damage):
    damage(tmp_path / "graph.h5")
    with pytest.raises(UserError, match="graph.h5: ") as error:
        run(tmp_path / "graph.h5", tmp_path / "parts", "--parts", 2)
    assert "\n" not in str(error.value) and not (tmp_path / "parts").exists()


def test_loads_nothing_heavy_without_metis(tmp_path, graph):
    code = (
        "import argparse, sys\n"
        "from glpilot.app.commands import partition\n"
        "parser = argparse.ArgumentParser(); partition.add_arguments(parser)\n"
        "assert 'numpy' not in sys.modules\n"
        "partition.run(parser.parse_args())\n"
        "assert not {'torch', 'dgl', 'mpi4py', 'horovod'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "graph.h5", tmp_path / "parts", "--parts", "2"]
    subprocess.run([*command, "--method", "random"], check=True, timeout=60)
