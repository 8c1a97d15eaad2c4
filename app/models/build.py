"""The model that the config names."""

from __future__ import annotations

from glpilot.app.config.keys import ModelConfig
from glpilot.app.models.gat import GAT
from glpilot.app.models.gcn import GCN
from glpilot.app.models.gnn import GNN
from glpilot.app.models.sage import SAGE


def build_model(config: ModelConfig, num_inputs: int, num_classes: int) -> GNN:
    """The model that the config names, with freshly drawn weights (from torch's global generator)."""
    size = (num_inputs, config.hidden, num_classes, config.layers, config.dropout)
    if config.name == "gat":
        return GAT(*size, config.heads)
    return {"sage": SAGE, "gcn": GCN}[config.name](*size)
