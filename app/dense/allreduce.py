"""The model's gradients, summed over all ranks in every step: synchronous data parallelism."""

from __future__ import annotations

from typing import Callable

import horovod.torch as hvd
import torch
from torch import Tensor


class DenseSync:
    """Sums the gradients of the model's parameters, and the loss beside them, over all ranks."""

    def __init__(self, parameters: list[Tensor], num_ranks: int):
        self._parameters = parameters
        self._num_ranks = num_ranks
        self.num_bytes_per_step = 4 * (sum(parameter.numel() for parameter in parameters) + 1)

    def start(self, loss: Tensor) -> Callable[[], float]:
        """Collective, does not wait: submit the parameters' gradients and this rank's share of the loss.

        Returns:
            A function, collective: waits until every rank has submitted, leaves the sums in the parameters'
            `.grad`, returns the global loss.
        """
        grads = [
            parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            for parameter in self._parameters
        ]
        flat = torch.cat([grad.flatten() for grad in grads] + [loss.detach().reshape(1)])
        handle = hvd.allreduce_async_(flat, name="dense", op=hvd.Sum) if self._num_ranks > 1 else None

        def finish() -> float:
            if handle is not None:
                hvd.synchronize(handle)
            pieces = flat[:-1].split([parameter.numel() for parameter in self._parameters])
            for parameter, piece in zip(self._parameters, pieces):
                parameter.grad = piece.view_as(parameter)
            return float(flat[-1])

        return finish
