"""Where a rank computes: its GPU or the CPU, and with how many threads."""

from __future__ import annotations

import os

import torch

from glpilot.data.errors import UserError


def set_num_threads(num_threads: int) -> None:
    """Threads per rank of torch, and of DGL's operations in the models, which share its OpenMP runtime."""
    os.environ["OMP_NUM_THREADS"] = str(num_threads)
    torch.set_num_threads(num_threads)


def choose_device(setting: str, host_rank: int) -> torch.device:
    """The device of a rank: the ranks of a host take its GPUs in turn.

    Raises:
        UserError: a GPU is wanted where there is none.
    """
    if setting == "cpu" or (setting == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UserError("run.device: expected a GPU for cuda, found none that torch can use; set cpu or auto")
    return torch.device("cuda", host_rank % torch.cuda.device_count())
