"""GraphSAGE with mean aggregation (Hamilton et al., NeurIPS 2017)."""
from __future__ import annotations

from dgl.nn.pytorch import SAGEConv
from torch import Tensor

from glpilot.app.models.gnn import GNN


class SAGE(GNN):
    def __init__(self, num_inputs: int, hidden: int, num_classes: int, num_layers: int, dropout: float):
        super().__init__(dropout)
        self.widths = [hidden] * (num_layers - 1) + [num_classes]
        for width_in, width_out in zip([num_inputs] + self.widths, self.widths):
            self.layers.append(SAGEConv(width_in, width_out, "mean"))

    def convolve(self, index: int, block, x: Tensor) -> Tensor:
        return self.layers[index](block, x)
