"""The learning rate's factor over a run."""

from __future__ import annotations

import math

import pytest

from glpilot.app.training.lr_schedule import scale_lr


def factors(schedule: str, num_warmup_steps: int, num_steps: int) -> list[float]:
    return [scale_lr(schedule, step, num_warmup_steps, num_steps) for step in range(num_steps)]


@pytest.mark.parametrize("num_warmup_steps", [0, 3, 20])
def test_constant(num_warmup_steps):
    assert factors("constant", num_warmup_steps, 10) == [1.0] * 10


def test_warmup_is_linear_and_then_constant():
    assert factors("warmup", 4, 7) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("schedule", ["warmup", "cosine"])
def test_a_warmup_longer_than_the_run(schedule):
    assert factors(schedule, 10, 4) == [0.1, 0.2, 0.3, 0.4]


def test_cosine_falls_from_one_towards_zero():
    expected = [0.5 * (1 + math.cos(math.pi * step / 8)) for step in range(8)]
    assert factors("cosine", 0, 8) == pytest.approx(expected)
    assert expected[0] == 1.0 and expected[4] == pytest.approx(0.5)


def test_cosine_after_warmup():
    after = [0.5 * (1 + math.cos(math.pi * step / 6)) for step in range(6)]
    assert factors("cosine", 2, 8) == pytest.approx([0.5, 1.0] + after)
    assert scale_lr("cosine", 8, 2, 8) == pytest.approx(0)


@pytest.mark.parametrize("schedule", ["constant", "warmup", "cosine"])
@pytest.mark.parametrize("num_warmup_steps, num_steps", [(0, 1), (1, 1), (5, 5), (0, 13), (4, 13)])
def test_every_step_learns_and_none_more_than_the_rate(schedule, num_warmup_steps, num_steps):
    assert all(0 < factor <= 1 for factor in factors(schedule, num_warmup_steps, num_steps))
