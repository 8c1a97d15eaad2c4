"""Gradients of the model and losses are summed over all ranks."""

from __future__ import annotations

import pytest
import torch

from glpilot.app.dense.allreduce import DenseSync

pytestmark = [pytest.mark.mpi, pytest.mark.hosts]


def test_dense_gradients_and_loss_are_summed(communicator):
    parameters = [torch.nn.Parameter(torch.zeros(3, 2)), torch.nn.Parameter(torch.zeros(4))]
    parameters[0].grad = torch.full((3, 2), float(communicator.rank + 1))
    if communicator.rank == 0:  # the others have none
        parameters[1].grad = torch.ones(4)
    loss = DenseSync(parameters, communicator.size).start(torch.tensor(2.0))()
    total = communicator.size * (communicator.size + 1) / 2
    assert loss == 2.0 * communicator.size
    assert torch.equal(parameters[0].grad, torch.full((3, 2), total))
    assert torch.equal(parameters[1].grad, torch.ones(4))
