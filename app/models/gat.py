"""Graph attention (Veličković et al., ICLR 2018): heads concatenated in hidden layers, averaged in the last."""
from __future__ import annotations

import torch.nn.functional as F
from dgl.nn.pytorch import GATConv
from torch import Tensor

from glpilot.app.models.gnn import GNN


class GAT(GNN):
    activation = staticmethod(F.elu)

    def __init__(self, num_inputs: int, hidden: int, num_classes: int, num_layers: int, dropout: float, heads: int):
        """`hidden` is the width over all heads, a multiple of `heads`."""
        super().__init__(dropout)
        self.widths = [hidden] * (num_layers - 1) + [num_classes]
        for index, width_in in enumerate([num_inputs] + self.widths[:-1]):
            width_per_head = num_classes if index == num_layers - 1 else hidden // heads
            # Sampled blocks hold nodes without in-edges; a residual keeps their own input.
            conv = GATConv(width_in, width_per_head, heads, residual=True, allow_zero_in_degree=True)
            self.layers.append(conv)

    def convolve(self, index: int, block, x: Tensor) -> Tensor:
        if block.num_dst_nodes() == 0:  # DGL cannot reshape the residual of nothing
            return self.layers[index].fc(x)[:, : self.widths[index]]
        out = self.layers[index](block, x)
        return out.mean(dim=1) if index == len(self.layers) - 1 else out.flatten(1)
