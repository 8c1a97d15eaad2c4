"""A plain single-process training loop over nn.Embedding: what any number of ranks must compute.

It shares only the model's code with the program: no partition, no windows, no Horovod, no kernels of ours.
"""

from __future__ import annotations

import dgl
import numpy as np
import torch
import torch.nn.functional as F


class Oracle:
    """Trains on full neighbourhoods with given seeds; the model and the table's first values are given too."""

    def __init__(self, indptr, indices, labels, model, initial_rows, optimizer, row_lr, model_lr, features=None):
        indptr, indices = torch.from_numpy(indptr), torch.from_numpy(indices.astype(np.int64))
        self.graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
        self.degrees = self.graph.in_degrees().float()
        self.labels = torch.from_numpy(labels).float() if labels.ndim == 2 else torch.from_numpy(labels).long()
        self.model = model
        self.features = features
        self.table = torch.nn.Embedding.from_pretrained(torch.from_numpy(initial_rows.copy()), freeze=False)
        self.model_optimizer = torch.optim.Adam(model.parameters(), lr=model_lr)
        self.rows = ROW_OPTIMIZERS[optimizer](self.table.weight, row_lr)

    def step(self, seeds: np.ndarray) -> float:
        """One step on distinct seeds; returns the mean loss."""
        layers = [-1] * len(self.model.layers)
        inputs, _, blocks = dgl.dataloading.NeighborSampler(layers).sample_blocks(self.graph, torch.from_numpy(seeds))
        for block in blocks:
            block.srcdata["degree"] = self.degrees[block.srcdata[dgl.NID]]
            block.dstdata["degree"] = self.degrees[block.dstdata[dgl.NID]]
        x = self.table(inputs)
        if self.features is not None:
            x = torch.cat([x, self.features[inputs]], dim=1)
        logits, labels = self.model(blocks, x), self.labels[seeds]
        if labels.ndim == 2:
            loss = F.binary_cross_entropy_with_logits(logits, labels)
        else:
            loss = F.cross_entropy(logits, labels)
        self.model_optimizer.zero_grad()
        self.table.zero_grad()
        loss.backward()
        self.model_optimizer.step()
        self.rows.step(inputs)
        return loss.item()


class TorchRows:
    """A torch optimizer on the dense table; it leaves rows without a gradient alone."""

    def __init__(self, kind, weight, lr):
        self.optimizer = kind([weight], lr=lr)

    def step(self, touched):
        self.optimizer.step()


class RowwiseAdagrad:
    def __init__(self, weight, lr):
        self.weight, self.lr = weight, lr
        self.total = torch.zeros(len(weight))

    @torch.no_grad()
    def step(self, touched):
        for row in touched.tolist():
            grad = self.weight.grad[row]
            self.total[row] += grad.square().mean()
            self.weight[row] -= self.lr * grad / (self.total[row].sqrt() + 1e-10)


class AdamByRow:
    """Adam on the touched rows, each with a step count of its own."""

    def __init__(self, weight, lr):
        self.weight, self.lr = weight, lr
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.count = torch.zeros(len(weight))

    @torch.no_grad()
    def step(self, touched):
        grad = self.weight.grad[touched]
        self.count[touched] += 1
        self.mean[touched] = 0.9 * self.mean[touched] + 0.1 * grad
        self.square[touched] = 0.999 * self.square[touched] + 0.001 * grad.square()
        count = self.count[touched, None]
        mean = self.mean[touched] / (1 - 0.9**count)
        square = self.square[touched] / (1 - 0.999**count)
        self.weight[touched] -= self.lr * mean / (square.sqrt() + 1e-8)


ROW_OPTIMIZERS = {
    "sgd": lambda weight, lr: TorchRows(torch.optim.SGD, weight, lr),
    "adagrad": lambda weight, lr: TorchRows(torch.optim.Adagrad, weight, lr),
    "rowwise_adagrad": RowwiseAdagrad,
    "adam": AdamByRow,
}
