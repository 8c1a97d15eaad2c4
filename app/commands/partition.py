"""`glpilot partition`: cut graph.h5 into parts, a file each, with the book that says who owns what."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .stage import show_stage

SUMMARY = "cut a graph into parts"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("graph", type=Path, help="graph.h5, as import and generate make it")
    parser.add_argument("folder", type=Path, metavar="parts", help="the folder to write the parts to")
    parser.add_argument(
        "--parts",
        type=int,
        required=True,
        dest="num_parts",
        metavar="N",
        help="how many; a multiple of the number of ranks to train with",
    )
    parser.add_argument(
        "--method",
        default="metis",
        metavar="metis|random|range|FILE.npy",
        help="few edges between parts (the default), or no order at all, or consecutive nodes, "
        "or an array with the part of every node",
    )
    parser.add_argument("--seed", type=int, default=1, help="for --method random (METIS has a fixed one); default 1")
    parser.add_argument("--force", action="store_true", help="replace a partition that the folder holds")


def run(arguments: Namespace) -> int:
    from glpilot.data.graph import read_graph
    from glpilot.partition.assign import assign, check_method, check_num_parts
    from glpilot.partition.build import check_folder, write_partition

    check_num_parts(arguments.num_parts)
    check_method(arguments.method)
    check_folder(arguments.folder, arguments.force)
    show_stage(f"reading {arguments.graph}")
    graph, graph_hash = read_graph(arguments.graph)
    show_stage(f"assigning {graph.num_nodes:,} nodes to {arguments.num_parts} parts by {arguments.method}")
    part_id = assign(graph, arguments.num_parts, arguments.method, arguments.seed)
    show_stage("writing parts")
    book, counts = write_partition(
        arguments.folder,
        graph,
        graph_hash,
        part_id,
        arguments.num_parts,
        Path(arguments.method).name,
        arguments.seed,
        arguments.force,
    )
    print(format_table(book, counts))
    return 0


def format_table(book, counts) -> str:
    """A row for every part, then the quality of the whole, then what the user may want to know of it."""
    lines = [f"{'part':>5} {'nodes':>13} {'edges':>15} {'train nodes':>13} {'remote sources':>15}"]
    for part_id, count in enumerate(counts):
        lines.append(
            f"{part_id:>5} {count.num_nodes:>13,} {count.num_edges:>15,} {count.num_train_nodes:>13,} "
            f"{count.num_remote_sources:>15,}"
        )
    num_edges = book.num_edges if book.is_directed else book.num_edges // 2
    kind = "directed" if book.is_directed else "undirected"
    share = book.edge_cut / num_edges if num_edges else 0.0
    lines.append(f"edge cut      {book.edge_cut:,} of {num_edges:,} {kind} edges ({share:.1%})")
    lines.append(
        "balance       "
        + ", ".join(f"{name.replace('_', ' ')} {ratio:.3f}" for name, ratio in book.balance.items())
        + " (largest over mean)"
    )
    lines.append(f"replication   {book.replication:.3f} parts a node")
    return "\n".join(lines + hints(counts))


def hints(counts) -> list[str]:
    """What is allowed but seldom meant: parts without nodes, or without training nodes."""
    if not any(count.num_train_nodes for count in counts):
        return ["hint: no node of the graph is in the training split; such parts serve evaluation only"]
    empty = [str(p) for p, count in enumerate(counts) if count.num_nodes == 0]
    idle = [str(p) for p, count in enumerate(counts) if count.num_nodes and not count.num_train_nodes]
    return [
        f"hint: parts that own {what}: {', '.join(parts)}; a rank with none but such has no seeds of its own"
        for what, parts in (("no node", empty), ("no training node", idle))
        if parts
    ]
