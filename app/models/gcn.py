"""Graph convolution (Kipf and Welling, ICLR 2017) on sampled blocks.

The symmetric normalisation uses the nodes' true degrees, not those within the block, and a node's sampled
neighbours stand for all of them; so the expectation is that of the full graph, whatever else is in the batch.
"""

from __future__ import annotations

import dgl.function as fn
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glpilot.app.models.gnn import GNN


class GCN(GNN):
    needs_degrees = True

    def __init__(self, num_inputs: int, hidden: int, num_classes: int, num_layers: int, dropout: float):
        super().__init__(dropout)
        self.widths = [hidden] * (num_layers - 1) + [num_classes]
        for width_in, width_out in zip([num_inputs] + self.widths, self.widths):
            self.layers.append(nn.Linear(width_in, width_out))

    def convolve(self, index: int, block, x: Tensor) -> Tensor:
        return self.layers[index](propagate(block, x))

    def first_partial(self, block, x: Tensor, columns: Tensor) -> Tensor:
        return F.linear(propagate(block, x), self.layers[0].weight[:, columns])

    def complete_first(self, block, sums: Tensor) -> Tensor:
        return sums + self.layers[0].bias


def propagate(block, x: Tensor) -> Tensor:
    """Σ over u in N(v) ∪ {v} of x_u / √((d_u + 1)(d_v + 1)), [num_src_nodes, width] to [num_dst_nodes, width]."""
    with block.local_scope():
        scale = torch.rsqrt(block.srcdata["degree"] + 1).unsqueeze(1)
        scaled = x * scale
        block.srcdata["x"] = scaled
        block.update_all(fn.copy_u("x", "m"), fn.sum("m", "sum"))
        num_sampled = block.in_degrees().to(x).clamp(min=1)
        weight = (block.dstdata["degree"] / num_sampled).unsqueeze(1)
        num_dst_nodes = block.num_dst_nodes()
        return scale[:num_dst_nodes] * (weight * block.dstdata["sum"] + scaled[:num_dst_nodes])
