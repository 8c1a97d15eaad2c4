import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from glpilot.data.errors import UserError
from glpilot.data.part import part_path, read_part, read_topology
from glpilot.partition import build
from glpilot.partition.book import read_book
from glpilot.partition.build import write_partition
from helpers.graphs import edge_set, make_graph, partitioned_graphs, planted_graph

NODE_ARRAYS = ("labels", "train_mask", "val_mask", "test_mask", "original_ids", "features", "embeddings")


def write(folder, graph, num_parts, force=False):
    part_id = np.arange(graph.num_nodes) % num_parts
    return write_partition(folder, graph, "hash", part_id, num_parts, "range", 1, force)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=partitioned_graphs())
def test_everything_arrives_in_its_part(tmp_path, case):
    graph, part_id, num_parts = case
    book, counts = write_partition(tmp_path, graph, "hash", part_id, num_parts, "parts.npy", 3, force=True)
    assert read_book(tmp_path) == book
    assert (book.num_nodes, book.num_edges, book.num_parts) == (graph.num_nodes, graph.num_edges, num_parts)
    assert (book.graph_hash, book.method, book.seed) == ("hash", "parts.npy", 3)
    assert (book.num_classes, book.num_features, book.dtype_bits) == (3, 2, 32)
    assert (book.is_multilabel, book.is_directed) == (graph.nodes.is_multilabel, graph.is_directed)

    rows_of_nids, edges = [], []
    for p in range(num_parts):
        part = read_part(part_path(tmp_path, p))
        assert (part.part_id, part.num_parts, part.start_nid) == (p, num_parts, book.offsets[p])
        assert part.graph_hash == "hash" and part.indices.dtype == np.int32
        assert part.nodes.num_nodes == book.offsets[p + 1] - book.offsets[p] == counts[p].num_nodes
        assert (part_id[part.graph_nids] == p).all()
        assert part.nodes.class_names == graph.nodes.class_names
        for name in NODE_ARRAYS:
            found, expected = getattr(part.nodes, name), getattr(graph.nodes, name)[part.graph_nids]
            assert found.dtype == expected.dtype and found.shape == expected.shape, name
            assert (found == expected).all(), name
        rows_of_nids += part.graph_nids.tolist()
        edges += edge_set(part.indptr, part.indices, part.start_nid)
    mapped_back = sorted((rows_of_nids[source], rows_of_nids[target]) for source, target in edges)
    assert mapped_back == sorted(edge_set(graph.indptr, graph.indices))


def test_a_graph_without_features(tmp_path):
    graph = make_graph(4, [(0, 1)])
    bare = {name: getattr(graph.nodes, name) for name in graph.nodes.__dataclass_fields__}
    graph = type(graph)(graph.indptr, graph.indices, type(graph.nodes)(**{**bare, "features": None}), False)
    book, _ = write(tmp_path / "parts", graph, 2)
    assert book.num_features == 0 and read_part(part_path(tmp_path / "parts", 1)).nodes.features is None


def test_wide_indices_when_the_graph_needs_them(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "index_bits", lambda num_nodes, num_edges: 64)
    book, _ = write(tmp_path, planted_graph(40), 2)
    assert book.dtype_bits == 64 and read_topology(part_path(tmp_path, 1))[1].dtype == np.int64


def test_an_existing_partition_is_kept_without_force(tmp_path):
    write(tmp_path, planted_graph(40), 2)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(UserError, match="--force"):
        write(tmp_path, planted_graph(60), 3)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_force_removes_old_parts_and_nothing_else(tmp_path):
    write(tmp_path, planted_graph(40), 7)
    foreign = ["graph.h5", "part-1.h5", "part-00001.h5.orig", "notes.txt"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    for name in (".part-00000.h5.123.tmp", ".book.json.123.tmp"):  # as a killed run leaves them
        (tmp_path / name).write_text("half")
    write(tmp_path, planted_graph(60), 3, force=True)
    ours = ["book.json", "part-00000.h5", "part-00001.h5", "part-00002.h5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(ours + foreign)
    assert read_book(tmp_path).num_nodes == 60


def test_parts_without_a_book_are_no_partition(tmp_path):
    write(tmp_path, planted_graph(40), 4)
    (tmp_path / "book.json").unlink()
    write(tmp_path, planted_graph(40), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.json", "part-00000.h5", "part-00001.h5"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("was_there", [False, True])
def test_failed_work_leaves_what_was_there(tmp_path, monkeypatch, error, was_there):
    folder = tmp_path / "parts"
    if was_there:
        write(folder, planted_graph(40), 4)
        (folder / "notes.txt").write_text("mine")
    write_part = build.write_part
    kept = contents_of(folder)

    def fail_at_the_second(path, part):
        if part.part_id == 1:
            raise error
        write_part(path, part)

    monkeypatch.setattr(build, "write_part", fail_at_the_second)
    with pytest.raises(type(error)):
        write(folder, planted_graph(40), 3, force=True)
    assert folder.exists() == was_there
    assert contents_of(folder) == kept


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*")} if folder.exists() else {}


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "parts").write_text("mine")
    with pytest.raises(UserError, match="found a file"):
        write(tmp_path / "parts", planted_graph(40), 2, force=True)
    with pytest.raises(UserError, match="cannot write to"):
        write(tmp_path / "parts" / "below", planted_graph(40), 2)
    assert (tmp_path / "parts").read_text() == "mine"
