"""`glpilot import`: make graph.h5 of the files that a user has."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from glpilot.data.errors import UserError

from .stage import show_stage

SUMMARY = "make graph.h5 of an edge list, a sparse matrix, a DGL graph or an OGB data set"
EPILOG = """\
CSV files, plain or gzip, have a header and are separated by comma, tab or semicolon; further columns are
ignored. Ids are integers if all are, and strings if none is; for names of which some are numbers, as 007,
give --ids string. The nodes are the ids that occur in the edges, and for strings also in the labels, in
ascending order; to have other nodes without edges, or an order of your own, give --num-nodes or --node-ids.
Labels may be words or integers; nodes that are not in the labels file have none, and are in no split. A node
with several labels has a row for each.
"""
SOURCES = ("edges", "npz", "dgl", "ogb")
# Option → the sources that it goes with.
GOES_WITH = {"num_nodes": ("edges",), "node_ids": ("edges",), "ids": ("edges",), "root": ("ogb",)}


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("output", type=Path, metavar="graph.h5", help="the file to write")

    source = parser.add_argument_group("the edges (one of these)")
    source.add_argument(
        "--edges",
        type=Path,
        metavar="CSV",
        help="an edge a row, in columns src,dst or source,target, else the first two",
    )
    source.add_argument("--npz", type=Path, metavar="FILE", help="a square matrix of scipy.sparse.save_npz")
    source.add_argument(
        "--dgl",
        type=Path,
        metavar="FILE",
        help="a homogeneous graph of dgl.save_graphs; its node data label, feat, train_mask, val_mask "
        "and test_mask are taken over",
    )
    source.add_argument(
        "--ogb",
        metavar="NAME",
        help="an OGB node-property data set on this machine, such as ogbn-arxiv, with features, labels and split",
    )
    source.add_argument("--root", type=Path, metavar="DIR", help="OGB's folder of data sets; default: dataset")
    source.add_argument(
        "--directed",
        action="store_true",
        help="keep the edges' directions; the default is to store each edge both ways",
    )

    nodes = parser.add_argument_group("the nodes of --edges")
    nodes.add_argument("--num-nodes", type=int, metavar="N", help="the ids are 0 … N-1, with or without edges")
    nodes.add_argument(
        "--node-ids",
        type=Path,
        metavar="CSV",
        help="all ids, one a row below a header, in the order of the rows of --features",
    )
    nodes.add_argument("--ids", choices=("auto", "integer", "string"), help="what the ids are; default: auto")

    data = parser.add_argument_group("what is known of the nodes")
    data.add_argument(
        "--labels",
        type=Path,
        metavar="CSV|NPY",
        help="columns node,label, a row a node and label; or an array with a class number a node "
        "(negative: unknown), or a row of zeros and ones a node",
    )
    data.add_argument("--multilabel", action="store_true", help="several labels a node, even if no node has two")
    data.add_argument("--features", type=Path, metavar="NPY", help="an array with a row a node")
    data.add_argument("--embeddings", type=Path, metavar="NPY", help="rows to start the training from, one a node")

    split = parser.add_argument_group("which nodes train and test")
    split.add_argument(
        "--split",
        metavar="T,V,T",
        help="fractions of the labelled nodes for train, validation and test, at random; default: 0.6,0.2,0.2",
    )
    split.add_argument(
        "--masks",
        type=Path,
        metavar="CSV|NPZ",
        help="columns node,split with train, val, test or none; or arrays train_mask, val_mask, test_mask",
    )
    split.add_argument("--seed", type=int, default=1, help="of the random split; default: 1")
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")


def run(arguments: Namespace) -> int:
    start = time.perf_counter()
    _check_options(arguments)

    from glpilot.data.graph import Graph, write_graph
    from glpilot.data.hdf5 import check_output
    from glpilot.data.importers.node_data import read_node_data
    from glpilot.data.splits import parse_fractions
    from glpilot.data.structure import simple_csc

    from .graph_summary import format_summary

    fractions = parse_fractions(arguments.split) if arguments.split is not None else None
    check_output(arguments.output, arguments.force)
    show_stage("reading edges")
    source = _read_source(arguments)
    show_stage("reading nodes")
    nodes, num_useless = read_node_data(
        source,
        labels_path=arguments.labels,
        multilabel=arguments.multilabel,
        split_path=arguments.masks,
        fractions=fractions,
        seed=arguments.seed,
        features_path=arguments.features,
        embeddings_path=arguments.embeddings,
    )
    show_stage(f"sorting {len(source.src):,} edges")
    structure = simple_csc(source.src, source.dst, len(source.node_ids), arguments.directed)
    show_stage("writing")
    graph = Graph(structure.indptr, structure.indices, nodes, arguments.directed)
    write_graph(arguments.output, graph, arguments.force)

    dropped = f"{structure.num_duplicates:,} duplicate edges, {structure.num_self_loops:,} self-loops"
    if structure.num_duplicates and not arguments.directed:
        dropped += " (an edge and its reverse are the same)"
    print(format_summary(arguments.output, graph, time.perf_counter() - start, dropped))
    for warning in _warnings(graph, num_useless):
        print(f"glpilot import: warning: {warning}", file=sys.stderr)
    return 0


def _check_options(arguments: Namespace) -> None:
    given = [name for name in SOURCES if getattr(arguments, name) is not None]
    if len(given) != 1:
        raise UserError(
            "expected one of --edges, --npz, --dgl and --ogb, found "
            + (" and ".join(f"--{name}" for name in given) or "none of them")
        )
    for option, sources in GOES_WITH.items():
        if getattr(arguments, option) is not None and given[0] not in sources:
            raise UserError(f"--{option.replace('_', '-')} goes with --{sources[0]}, not with --{given[0]}")
    if arguments.num_nodes is not None and arguments.node_ids is not None:
        raise UserError("--num-nodes and --node-ids both say which nodes there are; give one of them")
    if arguments.num_nodes is not None and arguments.ids == "string":
        raise UserError("--num-nodes makes the ids 0 … N-1; give --node-ids FILE to list ids that are strings")
    if arguments.split is not None and arguments.masks is not None:
        raise UserError("--split and --masks both say which nodes train; give one of them")
    if arguments.multilabel and (arguments.labels is None or arguments.labels.suffix == ".npy"):
        raise UserError("--multilabel goes with a CSV file in --labels")
    if arguments.masks is not None and arguments.labels is None and given[0] in ("edges", "npz"):
        raise UserError("--masks needs --labels: a node without a label is in no split")
    if arguments.seed < 0:
        raise UserError(f"--seed {arguments.seed}: expected 0 or more")


def _read_source(arguments: Namespace):
    # Each reader is imported alone: that of DGL files loads DGL and torch.
    if arguments.npz is not None:
        from glpilot.data.importers.scipy_file import read_scipy

        return read_scipy(arguments.npz)
    if arguments.dgl is not None:
        from glpilot.data.importers.dgl_file import read_dgl

        return read_dgl(arguments.dgl)
    if arguments.ogb is not None:
        from glpilot.data.importers.ogb_folder import read_ogb

        return read_ogb(arguments.ogb, arguments.root or Path("dataset"))

    from glpilot.data.importers.edge_table import read_edges
    from glpilot.data.importers.node_ids import NodeIds, read_node_list
    from glpilot.data.importers.source import Source

    declared, kind = None, arguments.ids or "auto"
    if arguments.num_nodes is not None:
        declared = NodeIds.consecutive(arguments.num_nodes, f"one of 0 … {arguments.num_nodes - 1}, by --num-nodes")
    elif arguments.node_ids is not None:
        declared = read_node_list(arguments.node_ids, kind)
    labels_path = None if arguments.labels is None or arguments.labels.suffix == ".npy" else arguments.labels
    node_ids, src, dst = read_edges(arguments.edges, declared, kind, labels_path)
    return Source(node_ids, src, dst, str(arguments.edges))


def _warnings(graph, num_useless: int) -> list[str]:
    warnings = []
    if not graph.nodes.class_names:
        warnings.append("there are no labels, so no node is in a split, and training will refuse the graph")
    elif not graph.nodes.train_mask.any():
        warnings.append("no node is in the training split")
    if num_useless:
        warnings.append(f"{num_useless:,} nodes of the given split have no label, and are left out of it")
    return warnings
