"""What every kind of input comes down to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import UserError
from ..splits import Split
from .labels import Labels
from .node_ids import NodeIds


@dataclass(frozen=True)
class Source:
    """Edges as they were given, and what the same input says of the nodes.

    Attributes:
        src, dst: int64 or int32 [num_given_edges] of nodes, each in 0 … len(node_ids) - 1.
        features: float32 [num_nodes, num_features], or None.
        given_in: the input's name, for messages.
    """

    node_ids: NodeIds
    src: np.ndarray
    dst: np.ndarray
    given_in: str
    labels: Labels | None = None
    split: Split | None = None
    features: np.ndarray | None = None


def check_ends(src: np.ndarray, dst: np.ndarray, num_nodes: int, origin: str) -> None:
    """Refuse edges whose ends are not in 0 … num_nodes - 1, which a damaged file may hold.

    Raises:
        UserError: there is such an edge.
    """
    for ends in (src, dst):
        if len(ends) and not 0 <= ends.min() <= ends.max() < num_nodes:
            raise UserError(f"{origin}: an edge ends outside of the {num_nodes} nodes")
