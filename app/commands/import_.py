"""`glpilot import`: make graph.h5 of the files that a user has."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from glpilot.data.errors import UserError

from .import_options import SUMMARY, add_arguments
from .stage import show_stage

if TYPE_CHECKING:
    from glpilot.data.importers.table_options import TableOptions

__all__ = ["SUMMARY", "add_arguments", "run"]
SOURCES = ("edges", "npz", "dgl", "ogb")
# Option → the sources that it goes with.
GOES_WITH = {"num_nodes": ("edges",), "node_ids": ("edges",), "ids": ("edges",), "root": ("ogb",)}


def run(arguments: Namespace) -> int:
    start = time.perf_counter()
    _check_options(arguments)

    from glpilot.data.graph import Graph, write_graph
    from glpilot.data.hdf5 import check_output
    from glpilot.data.importers.node_data import read_node_data
    from glpilot.data.splits import labelled_nodes, parse_fractions
    from glpilot.data.structure import simple_csc

    from .graph_summary import format_summary
    from .import_account import format_accounts, format_unlabelled, to_json

    fractions = parse_fractions(arguments.split) if arguments.split is not None else None
    options = _table_options(arguments)
    check_output(arguments.output, arguments.force)
    show_stage("reading edges")
    source = _read_source(arguments, options)
    show_stage("reading nodes")
    nodes, num_useless, marks = read_node_data(
        source,
        labels_path=arguments.labels,
        multilabel=arguments.multilabel,
        split_path=arguments.masks,
        fractions=fractions,
        seed=arguments.seed,
        features_path=arguments.features,
        embeddings_path=arguments.embeddings,
        options=options,
    )
    show_stage(f"sorting {len(source.src):,} edges")
    structure = simple_csc(source.src, source.dst, len(source.node_ids), arguments.directed)
    show_stage("writing")
    graph = Graph(structure.indptr, structure.indices, nodes, arguments.directed)
    num_unlabelled = int((~labelled_nodes(nodes.labels)).sum())
    write_graph(arguments.output, graph, arguments.force, to_json(options.accounts, num_unlabelled, marks))

    dropped = f"{structure.num_duplicates:,} duplicate edges, {structure.num_self_loops:,} self-loops"
    if structure.num_duplicates and not arguments.directed:
        dropped += " (an edge and its reverse are the same)"
    for line in format_accounts(options.accounts, options.has_header):
        print(line)
    if nodes.class_names or marks:
        print(format_unlabelled(num_unlabelled, marks))
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


def _table_options(arguments: Namespace) -> TableOptions:
    from glpilot.data.importers.marks import DEFAULT_MARKS, parse_marks
    from glpilot.data.importers.table_options import NO_COMMENTS, TableOptions

    roles = ("source", "target", "node", "label")
    chosen = {role: getattr(arguments, role) for role in roles if getattr(arguments, role) is not None}
    for role, name in chosen.items():
        if not name.strip():
            raise UserError(
                f"--{role}: expected the name of a column, got {name!r}; a column without a name is never meant"
            )
    comments = arguments.comment
    if comments is not None:
        if "" in comments or (NO_COMMENTS in comments and len(comments) > 1):
            raise UserError(f"--comment: expected what comments begin with, such as '#', or none alone; got {comments}")
        comments = () if comments == [NO_COMMENTS] else tuple(comments)
    return TableOptions(
        chosen=chosen,
        has_header=not arguments.no_header,
        comments=comments,
        marks=DEFAULT_MARKS if arguments.unlabelled is None else parse_marks(arguments.unlabelled),
    )


def _read_source(arguments: Namespace, options: TableOptions):
    # Each reader is imported alone: that of DGL files loads DGL and torch.
    if arguments.npz is not None:
        from glpilot.data.importers.scipy_file import read_scipy

        return read_scipy(arguments.npz)
    if arguments.dgl is not None:
        from glpilot.data.importers.dgl_file import read_dgl

        return read_dgl(arguments.dgl, options.marks)
    if arguments.ogb is not None:
        from glpilot.data.importers.ogb_folder import read_ogb

        return read_ogb(arguments.ogb, arguments.root or Path("dataset"), options.marks)

    from glpilot.data.importers.edge_table import read_edges
    from glpilot.data.importers.node_ids import NodeIds, read_node_list
    from glpilot.data.importers.source import Source

    declared, kind = None, arguments.ids or "auto"
    if arguments.num_nodes is not None:
        declared = NodeIds.consecutive(arguments.num_nodes, f"one of 0 … {arguments.num_nodes - 1}, by --num-nodes")
    elif arguments.node_ids is not None:
        declared = read_node_list(arguments.node_ids, kind, options)
    labels_path = None if arguments.labels is None or arguments.labels.suffix == ".npy" else arguments.labels
    node_ids, src, dst = read_edges(arguments.edges, declared, kind, labels_path, options)
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
