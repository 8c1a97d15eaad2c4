"""What every kind of input comes down to."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
