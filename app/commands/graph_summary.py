"""The few lines that `import` and `generate` end with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glpilot.data.graph import Graph


def format_summary(path: Path, graph: Graph, seconds: float, dropped: str | None = None) -> str:
    """What the file holds, a line a subject.

    Args:
        dropped: what was given and is not in the file.
    """
    nodes = graph.nodes
    if graph.is_directed:
        edges = f"{graph.num_edges:,}, directed"
    else:
        edges = f"{graph.num_edges // 2:,}, undirected, each stored in both directions"
    num_isolated = _count_isolated(graph)
    lines = [("nodes", f"{graph.num_nodes:,}" + (f", {num_isolated:,} without an edge" if num_isolated else ""))]
    lines.append(("edges", edges))
    if dropped:
        lines.append(("dropped", dropped))
    lines.append(("classes", _describe_classes(nodes)))
    masks = (("train", nodes.train_mask), ("validation", nodes.val_mask), ("test", nodes.test_mask))
    lines.append(("split", ", ".join(f"{int(mask.sum()):,} {name}" for name, mask in masks)))
    for name, array in (("features", nodes.features), ("embeddings", nodes.embeddings)):
        if array is not None:
            lines.append((name, f"{array.shape[1]:,} columns"))
    lines.append(("written", f"{path}, {path.stat().st_size / 2**20:,.1f} MiB, in {seconds:.1f} s"))
    return "\n".join(f"{subject:<11}{text}" for subject, text in lines)


def _count_isolated(graph: Graph) -> int:
    import numpy as np

    has_edge = np.diff(graph.indptr) > 0
    if graph.is_directed:
        has_edge[graph.indices] = True
    return int(np.count_nonzero(~has_edge))


def _describe_classes(nodes) -> str:
    from glpilot.data.splits import labelled_nodes

    num_labelled = int(labelled_nodes(nodes.labels).sum())
    kind = ", several a node" if nodes.is_multilabel else ""
    return f"{nodes.num_classes:,}{kind}, known of {num_labelled:,} nodes" if num_labelled else "none"
