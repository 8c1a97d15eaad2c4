"""The options of `glpilot import`."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

SUMMARY = "make graph.h5 of an edge list, a sparse matrix, a DGL graph or an OGB data set"
EPILOG = """\
CSV files, plain or gzip, in UTF-8, have a header and are separated by comma, tab, semicolon or |. Columns are
found by their names, wherever they stand: src,dst or source,target or from,to … for edges, node or id, label or
class, split; others are chosen by --source, --target, --node and --label, and further columns are ignored. A row
is a line. Ids are integers if all are (1.0, 2.0 … too, if all are written so), and strings if none is; for names
of which some are numbers, as 007, give --ids string. The nodes are the ids that occur in the edges, and for
strings also in the labels, in ascending order; to have other nodes without edges, or an order of your own, give
--num-nodes or --node-ids. Labels may be words or integers; nodes that are not in the labels file have none, and
are in no split. A node with several labels has a row for each.
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    # A value such as -1,nan is no option, though argparse takes only plain numbers for values.
    parser._negative_number_matcher = re.compile(r"^-[0-9]")
    parser.add_argument("output", type=Path, metavar="graph.h5", help="the file to write")

    source = parser.add_argument_group("the edges (one of these)")
    source.add_argument(
        "--edges",
        type=Path,
        metavar="CSV",
        help="an edge a row, in columns src,dst or source,target or another known pair of names",
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

    tables = parser.add_argument_group("how CSV files are read (all of them)")
    for option, meaning in (
        ("--source", "the column of --edges that an edge starts from"),
        ("--target", "the column of --edges that it ends in"),
        ("--node", "the column of nodes in --labels, --masks and --node-ids"),
        ("--label", "the column of labels in --labels"),
    ):
        tables.add_argument(option, metavar="COLUMN", help=f"{meaning}: a name; with --no-header a number from 1")
    tables.add_argument(
        "--no-header",
        action="store_true",
        help="first lines are data, unless they have the names of the columns that are looked for",
    )
    tables.add_argument(
        "--comment",
        action="append",
        metavar="TEXT",
        help="skip lines that begin with it, such as #; may be given again; none: all lines are data; by default "
        "comments (#, %%) may stand before a header only",
    )

    data = parser.add_argument_group("what is known of the nodes")
    data.add_argument(
        "--labels",
        type=Path,
        metavar="CSV|NPY",
        help="columns node,label, a row a node and label; or an array with a class number a node, or a row of zeros "
        "and ones a node",
    )
    data.add_argument(
        "--unlabelled",
        metavar="A,B,…",
        help="labels that mean that there is none, in any case; an empty one is the empty field; "
        "default: -1,,nan,NA,None,null",
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
