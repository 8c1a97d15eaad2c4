"""Node-property data sets of the Open Graph Benchmark (Hu et al. 2020), from the files of its raw layout.

Neither OGB's package nor its processed files, which are pickles, are needed. The layout of a data set NAME:

    ROOT/NAME/raw/edge.csv.gz, num-node-list.csv.gz, node-label.csv.gz, node-feat.csv.gz    without headers, or
    ROOT/NAME/raw/data.npz (edge_index, num_nodes_list, node_feat), node-label.npz (node_label)
    ROOT/NAME/split/SCHEME/train.csv.gz, valid.csv.gz, test.csv.gz                          without headers
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import UserError
from ..splits import Split
from .arrays import check_rows, open_npz, read_member
from .bare_table import open_bare_table, read_floats, read_numbers
from .labels import Labels, labels_of_array, read_number_column
from .masks import split_of_nodes
from .node_ids import NodeIds
from .source import Source, check_ends


def read_ogb(name: str, root: Path, marks: tuple[str, ...]) -> Source:
    """Read the data set `name`, such as ogbn-arxiv, from the folder that was OGB's `root`.

    Args:
        marks: labels that mean that there is none.

    Raises:
        UserError: the data set is not there, is heterogeneous, or a file is missing or damaged.
    """
    folder = _find_folder(name, Path(root))
    raw = folder / "raw"
    if (raw / "triplet-type-list.csv.gz").exists():
        raise UserError(f"{folder}: only homogeneous graphs are supported, {name} has several types of nodes or edges")
    read = _read_binary if (raw / "data.npz").exists() else _read_csv
    num_nodes, edges, features, labels = read(raw, marks)
    check_ends(edges[0], edges[1], num_nodes, str(raw))
    return Source(
        node_ids=NodeIds.consecutive(num_nodes, f"one of 0 … {num_nodes - 1}"),
        src=edges[0],
        dst=edges[1],
        given_in=str(folder),
        labels=labels,
        split=_read_split(folder, num_nodes),
        features=features,
    )


def _find_folder(name: str, root: Path) -> Path:
    candidates = [root / name.replace("-", "_"), root / name]
    for folder in candidates:
        if (folder / "raw").is_dir():
            return folder
    raise UserError(f"{candidates[0]}: no OGB data set {name!r} there; expected a folder 'raw' with its files")


def _read_csv(raw: Path, marks: tuple[str, ...]) -> tuple[int, np.ndarray, np.ndarray | None, Labels]:
    num_nodes = _one_graph(read_numbers(raw / "num-node-list.csv.gz", 1)[0], raw)
    edges = np.stack(read_numbers(raw / "edge.csv.gz", 2))
    path = raw / "node-feat.csv.gz"
    features = check_rows(read_floats(path), num_nodes, str(path)) if path.exists() else None
    path = raw / "node-label.csv.gz"
    table = open_bare_table(path)
    if table.layout.width > 1:
        return num_nodes, edges, features, labels_of_array(read_floats(path), num_nodes, str(path), marks)
    return num_nodes, edges, features, read_number_column(table, num_nodes, marks)


def _read_binary(raw: Path, marks: tuple[str, ...]) -> tuple[int, np.ndarray, np.ndarray | None, Labels]:
    path = raw / "data.npz"
    with open_npz(path) as file:
        num_nodes = _one_graph(read_member(path, file, "num_nodes_list"), raw)
        edges = read_member(path, file, "edge_index")
        if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind != "i":
            raise UserError(f"{path}: 'edge_index': expected integers [2, edges], found {edges.dtype} {edges.shape}")
        features = read_member(path, file, "node_feat") if "node_feat" in file else None
    if features is not None:
        features = check_rows(features, num_nodes, f"{path}: 'node_feat'")
    path = raw / "node-label.npz"
    with open_npz(path) as file:
        labels = labels_of_array(read_member(path, file, "node_label"), num_nodes, str(path), marks)
    return num_nodes, edges, features, labels


def _read_split(folder: Path, num_nodes: int) -> Split:
    schemes = sorted(path for path in (folder / "split").glob("*") if path.is_dir())
    if len(schemes) != 1:
        found = ", ".join(path.name for path in schemes) or "none"
        raise UserError(f"{folder / 'split'}: expected the folder of one splitting scheme, found {found}")
    nodes = [read_numbers(schemes[0] / f"{part}.csv.gz", 1)[0] for part in ("train", "valid", "test")]
    return split_of_nodes(nodes, num_nodes, str(schemes[0]))


def _one_graph(num_nodes_list: np.ndarray, raw: Path) -> int:
    if num_nodes_list.shape != (1,) or num_nodes_list.dtype.kind not in "iu" or not 0 < int(num_nodes_list[0]) < 2**62:
        raise UserError(f"{raw}: expected one graph with nodes, found the numbers of nodes {num_nodes_list.tolist()}")
    return int(num_nodes_list[0])
