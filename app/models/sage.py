"""GraphSAGE with mean aggregation (Hamilton et al., NeurIPS 2017)."""

from __future__ import annotations

import torch.nn.functional as F
from dgl.nn.pytorch import SAGEConv
from dgl.ops import copy_u_mean
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

    def first_partial(self, block, x: Tensor, columns: Tensor) -> Tensor:
        conv = self.layers[0]
        own = F.linear(x[: block.num_dst_nodes()], conv.fc_self.weight[:, columns])
        return own + F.linear(copy_u_mean(block, x), conv.fc_neigh.weight[:, columns])

    def complete_first(self, block, sums: Tensor) -> Tensor:
        return sums + self.layers[0].fc_self.bias
