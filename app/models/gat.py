"""Graph attention (Veličković et al., ICLR 2018): heads concatenated in hidden layers, averaged in the last."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from dgl.nn.pytorch import GATConv
from dgl.ops import edge_softmax, u_add_v, u_mul_e_sum
from torch import Tensor

from glpilot.app.models.gnn import GNN


class GAT(GNN):
    def activation(self, x: Tensor) -> Tensor:
        return F.elu(x)

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
        return self._join_heads(index, self.layers[index](block, x))

    def _join_heads(self, index: int, out: Tensor) -> Tensor:
        return out.mean(dim=1) if index == len(self.layers) - 1 else out.flatten(1)

    def first_partial(self, block, x: Tensor, columns: Tensor) -> Tensor:
        """Attention needs whole sums at both ends of an edge: [num_src_nodes + num_dst_nodes, heads × width], the
        projections of all nodes and then the residuals of those that the layer is computed for."""
        conv = self.layers[0]
        projected = F.linear(x, conv.fc.weight[:, columns])
        # Where the widths are equal, DGL's residual is the input itself.
        residual_weight = conv.res_fc.weight if conv.has_linear_res else torch.eye(projected.shape[1]).to(x)
        return torch.cat([projected, F.linear(x[: block.num_dst_nodes()], residual_weight[:, columns])])

    def complete_first(self, block, sums: Tensor) -> Tensor:
        conv = self.layers[0]
        projected, residual = sums.unflatten(1, conv.attn_l.shape[1:]).split(
            [block.num_src_nodes(), block.num_dst_nodes()]
        )
        score_of_source = (projected * conv.attn_l).sum(dim=-1, keepdim=True)
        score_of_target = (projected[: block.num_dst_nodes()] * conv.attn_r).sum(dim=-1, keepdim=True)
        attention = edge_softmax(block, conv.leaky_relu(u_add_v(block, score_of_source, score_of_target)))
        bias = conv.res_fc.bias if conv.has_linear_res else conv.bias
        attended = u_mul_e_sum(block, projected, attention)
        return self._join_heads(0, attended + residual + bias.view(conv.attn_l.shape))
