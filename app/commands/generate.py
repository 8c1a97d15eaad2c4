"""`glpilot generate`: make graph.h5 of a synthetic graph with planted classes."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from glpilot.data.errors import UserError

from .stage import show_stage

SUMMARY = "make graph.h5 of a synthetic graph with planted classes"
EPILOG = """\
The model is the degree-corrected stochastic block model of Karrer and Newman (2011). Every class is made of
communities: an edge stays in its class with the probability --homophily, and then in its community with the
probability --locality; otherwise it leaves for any other class. Degrees follow Zipf's law.
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("output", type=Path, metavar="graph.h5", help="the file to write")
    parser.add_argument("--nodes", type=int, required=True, metavar="N")
    parser.add_argument(
        "--degree",
        type=float,
        required=True,
        metavar="D",
        help="mean number of neighbours, so there are N*D/2 edges, each stored in both directions",
    )
    parser.add_argument("--classes", type=int, required=True, metavar="C")
    parser.add_argument(
        "--homophily", type=float, default=0.8, metavar="P", help="share of edges within a class; default: 0.8"
    )
    parser.add_argument(
        "--locality",
        type=float,
        default=0.7,
        metavar="P",
        help="share of those that stay within a community; default: 0.7",
    )
    parser.add_argument("--communities", type=int, metavar="K", help="default: one of every 400 nodes")
    parser.add_argument(
        "--zipf",
        type=float,
        default=0.7,
        metavar="S",
        help="exponent of the degrees: the node of rank r is drawn in proportion to r**-S; default: 0.7",
    )
    parser.add_argument(
        "--split",
        default="0.6,0.2,0.2",
        metavar="T,V,T",
        help="fractions of the nodes for train, validation and test; default: 0.6,0.2,0.2",
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same graph; default: 1")
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")


def run(arguments: Namespace) -> int:
    start = time.perf_counter()

    from glpilot.data.graph import write_graph
    from glpilot.data.hdf5 import check_output
    from glpilot.data.splits import parse_fractions
    from glpilot.data.synthetic import BlockModel, generate_graph

    from .graph_summary import format_summary

    fractions = parse_fractions(arguments.split)
    if arguments.seed < 0:
        raise UserError(f"--seed {arguments.seed}: expected 0 or more")
    model = BlockModel(
        num_nodes=arguments.nodes,
        degree=arguments.degree,
        num_classes=arguments.classes,
        homophily=arguments.homophily,
        locality=arguments.locality,
        num_communities=arguments.communities,
        zipf_exponent=arguments.zipf,
    )
    check_output(arguments.output, arguments.force)
    show_stage(f"drawing {model.num_edges:,} edges")
    graph = generate_graph(model, fractions, arguments.seed)
    show_stage("writing")
    write_graph(arguments.output, graph, arguments.force)
    print(format_summary(arguments.output, graph, time.perf_counter() - start))
    num_missing = model.num_edges - graph.num_edges // 2
    if num_missing > 0:
        print(
            f"glpilot generate: warning: {num_missing:,} of {model.num_edges:,} edges found no room within the "
            "classes; a lower --homophily or --degree, or fewer --classes, make some",
            file=sys.stderr,
        )
    return 0
