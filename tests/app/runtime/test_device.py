"""The device of a rank."""

from __future__ import annotations

import pytest
import torch

from glpilot.app.runtime.device import choose_device
from glpilot.data.errors import UserError


@pytest.mark.parametrize(
    "setting, num_gpus, host_rank, expected",
    [
        ("cpu", 2, 1, "cpu"),
        ("auto", 0, 3, "cpu"),
        ("auto", 2, 0, "cuda:0"),
        ("auto", 2, 3, "cuda:1"),
        ("cuda", 3, 2, "cuda:2"),
        ("cuda", 1, 5, "cuda:0"),
    ],
)
def test_ranks_of_a_host_take_its_gpus_in_turn(monkeypatch, setting, num_gpus, host_rank, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: num_gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    assert str(choose_device(setting, host_rank)) == expected


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UserError, match="run.device"):
        choose_device("cuda", 0)
