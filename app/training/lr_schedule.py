"""How the learning rates change over a run."""

from __future__ import annotations

import math


def scale_lr(schedule: str, step: int, num_warmup_steps: int, num_steps: int) -> float:
    """The factor on both learning rates in step 0, 1, … of num_steps."""
    if schedule == "constant":
        return 1.0
    if step < num_warmup_steps:
        return (step + 1) / num_warmup_steps
    if schedule == "warmup":
        return 1.0
    progress = (step - num_warmup_steps) / max(1, num_steps - num_warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))
