"""What all models share: layers applied block by block, dropout, and the loss."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn


class GNN(nn.Module):
    """A stack of layers on sampled blocks; a subclass fills `self.layers` and knows its activation.

    Attributes:
        widths: output width of each layer, as the next layer takes it.
        needs_degrees: whether blocks must carry the nodes' true degrees.
    """

    needs_degrees = False

    def __init__(self, dropout: float):
        super().__init__()
        self.layers = nn.ModuleList()
        self.widths: list[int] = []
        self._dropout = nn.Dropout(dropout)

    def forward(self, blocks: Sequence, x: Tensor) -> Tensor:
        """Logits [num_seeds, num_classes] from inputs [num_inputs, width]."""
        for index, block in enumerate(blocks):
            x = self.layer(index, block, x)
        return x

    def layer(self, index: int, block, x: Tensor) -> Tensor:
        """Apply one layer: [num_src_nodes, width in] to [num_dst_nodes, widths[index]]."""
        x = self.convolve(index, block, self._dropout(x))
        return x if index == len(self.layers) - 1 else self.activation(x)

    def convolve(self, index: int, block, x: Tensor) -> Tensor:
        raise NotImplementedError

    def activation(self, x: Tensor) -> Tensor:
        """Between the layers."""
        return F.relu(x)

    # A first layer is linear in its inputs until its sums are complete, so it can be computed on some columns of the
    # inputs at a time, in different places (P3: Gandhi and Iyer, OSDI 2021).

    def first_partial(self, block, x: Tensor, columns: Tensor) -> Tensor:
        """What some input columns add to the first layer's linear part; dropout is the caller's.

        Args:
            x: [num_src_nodes, len(columns)], those columns of the inputs.
            columns: int64, which they are.

        Returns:
            [any, any], of the same shape whatever the columns; summed over all columns it is what
            `forward_from_first` takes.
        """
        raise NotImplementedError

    def complete_first(self, block, sums: Tensor) -> Tensor:
        """What `convolve` gives for the first layer, from the summed partials."""
        raise NotImplementedError

    def forward_from_first(self, blocks: Sequence, sums: Tensor) -> Tensor:
        """Logits [num_seeds, num_classes] from the summed partials of the first layer."""
        x = self.complete_first(blocks[0], sums)
        if len(blocks) > 1:
            x = self.activation(x)
        for index in range(1, len(blocks)):
            x = self.layer(index, blocks[index], x)
        return x


def loss_sum(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum over seeds of the loss: cross-entropy, or for several labels per node the mean over classes of the
    binary cross-entropies.

    Args:
        logits: float32 [num_seeds, num_classes].
        labels: int64 [num_seeds], or float32 [num_seeds, num_classes] of zeros and ones.
    """
    if labels.ndim == 2:
        return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum") / logits.shape[1]
    return F.cross_entropy(logits, labels, reduction="sum")
