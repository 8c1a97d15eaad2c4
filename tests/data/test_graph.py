import re
import shutil
from dataclasses import fields, replace

import h5py
import numpy as np
import pytest

from glpilot.data import schema
from glpilot.data.errors import UserError
from glpilot.data.graph import graph_hash, read_graph, write_graph
from helpers.graphs import make_graph

GRAPH = make_graph(40, [(v, (v * 7 + 3) % 40) for v in range(40) if (v * 7 + 3) % 40 != v])
NO_EDGES = make_graph(4, [])
VARIANTS = {
    "single label": GRAPH,
    "several labels": make_graph(5, [(0, 1), (3, 4)], is_multilabel=True),
    "directed": make_graph(5, [(0, 1), (4, 3)], is_directed=True),
    "no edges": NO_EDGES,
    "integer ids": replace(GRAPH, nodes=replace(GRAPH.nodes, original_ids=np.arange(40) * 3 - 7)),
    "wide indices": replace(GRAPH, indices=GRAPH.indices.astype(np.int64)),
    "structure only": replace(GRAPH, nodes=replace(GRAPH.nodes, features=None, embeddings=None, class_names=[])),
    "ids not in ASCII": replace(
        NO_EDGES, nodes=replace(NO_EDGES.nodes, original_ids=np.array(["ü", "日本", "a\nb", ""], dtype=object))
    ),
}


@pytest.fixture
def path(tmp_path):
    write_graph(tmp_path / "graph.h5", GRAPH)
    return tmp_path / "graph.h5"


@pytest.mark.parametrize("graph", VARIANTS.values(), ids=VARIANTS)
def test_round_trip(tmp_path, graph):
    write_graph(tmp_path / "graph.h5", graph)
    read, digest = read_graph(tmp_path / "graph.h5")
    assert digest == graph_hash(graph) == graph_hash(read)
    assert read.is_directed == graph.is_directed
    np.testing.assert_array_equal(read.indptr, graph.indptr)
    np.testing.assert_array_equal(read.indices, graph.indices)
    assert read.indices.dtype == graph.indices.dtype
    for field in fields(graph.nodes):
        found, expected = getattr(read.nodes, field.name), getattr(graph.nodes, field.name)
        np.testing.assert_array_equal(found, expected, err_msg=field.name)
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), field.name
    assert [item.name for item in tmp_path.iterdir()] == ["graph.h5"]


def test_hash_sees_structure_labels_and_masks():
    nodes = GRAPH.nodes
    others = [
        replace(GRAPH, indices=GRAPH.indices[::-1].copy()),
        replace(GRAPH, nodes=replace(nodes, labels=nodes.labels[::-1].copy())),
        replace(GRAPH, nodes=replace(nodes, train_mask=~nodes.train_mask)),
        replace(GRAPH, nodes=replace(nodes, test_mask=~nodes.test_mask)),
    ]
    assert len({graph_hash(graph) for graph in [GRAPH, *others]}) == 5
    assert graph_hash(replace(GRAPH, indices=GRAPH.indices.astype(np.int64))) == graph_hash(GRAPH)


def test_existing_file_is_kept_unless_forced(path):
    before = path.read_bytes()
    with pytest.raises(UserError, match="--force"):
        write_graph(path, NO_EDGES)
    assert path.read_bytes() == before
    write_graph(path, NO_EDGES, force=True)
    assert read_graph(path)[0].num_nodes == 4


def test_failed_write_leaves_the_old_file_and_nothing_else(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_graph(path, replace(GRAPH, nodes=replace(GRAPH.nodes, labels=np.array([1j, object()]))), force=True)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["graph.h5"]


def test_damage_anywhere_is_a_user_error_or_harmless(path):
    intact = path.read_bytes()
    # HDF5 keeps strings, also those of attributes, in heaps of 4096 bytes or more that have no checksum.
    heaps = [match.start() for match in re.finditer(b"GCOL", intact)]
    positions = [p for p in range(len(intact)) if not any(heap <= p < heap + 4096 for heap in heaps)]
    rng = np.random.default_rng(0)
    num_refused = 0
    for position in rng.choice(positions, 300):
        damaged = bytearray(intact)
        damaged[position] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            graph, _ = read_graph(path)
            np.testing.assert_array_equal(graph.indices, GRAPH.indices)
            np.testing.assert_array_equal(graph.nodes.features, GRAPH.nodes.features)
        except UserError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            num_refused += 1
    assert num_refused > 10


def test_damaged_rows_are_caught_by_their_checksum(path):
    with h5py.File(path) as file:
        offset = file[schema.FEATURES].id.get_chunk_info(0).byte_offset
    damaged = bytearray(path.read_bytes())
    damaged[offset + 5] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(UserError, match="'features' cannot be read"):
        read_graph(path)


def test_damaged_metadata_are_caught_by_their_checksum(path):
    with h5py.File(path) as file:
        header = h5py.h5o.get_info(file[schema.FEATURES].id).addr
    intact = path.read_bytes()
    assert intact[header : header + 4] == b"OHDR"  # the header that has a checksum
    for position in range(header, header + 60):
        damaged = bytearray(intact)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(UserError):
            read_graph(path)


@pytest.mark.parametrize("length", [0, 7, 2000, -1])
def test_truncated_file(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match="graph.h5: not a readable HDF5 file"):
        read_graph(path)


def test_other_files_are_refused(tmp_path, path):
    with pytest.raises(UserError, match="no such file"):
        read_graph(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("src,dst\n")
    with pytest.raises(UserError, match="not a readable HDF5 file"):
        read_graph(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1]
    with pytest.raises(UserError, match="found another HDF5 file"):
        read_graph(tmp_path / "other.h5")
    with h5py.File(path, "r+") as file:
        file.attrs[schema.FORMAT_VERSION] = 99
    with pytest.raises(UserError, match="version 1, found 99; make the file again"):
        read_graph(path)
    with h5py.File(path, "r+") as file:
        file.attrs[schema.FORMAT] = schema.PART_FORMAT
    with pytest.raises(UserError, match="found glpilot.part"):
        read_graph(path)


def test_missing_dataset(path):
    with h5py.File(path, "r+") as file:
        del file[schema.VAL_MASK]
    with pytest.raises(UserError, match="'val_mask' is missing"):
        read_graph(path)


def test_a_changed_string_is_noticed(path):
    """HDF5 cannot checksum strings of their own lengths; the file must."""
    content = path.read_bytes()
    name = str(GRAPH.nodes.original_ids[7]).encode()
    assert content.count(name) >= 1
    path.write_bytes(content.replace(name, name[:-1] + b"~"))
    with pytest.raises(UserError, match="original_ids.*damaged"):
        read_graph(path)


def test_a_disk_without_room_is_refused_before_hdf5_meets_it(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1 << 20))
    with pytest.raises(UserError, match="needs 1 MiB, found 1 MiB free"):
        write_graph(tmp_path / "graph.h5", GRAPH)
    assert list(tmp_path.iterdir()) == []
