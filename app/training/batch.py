"""A step's batch, sampled and planned, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from glpilot.app.embedding.rows.plan import AccessPlan
from glpilot.app.graph.sampler import Batch


def gradient_of(x: Tensor) -> Tensor:
    """What `backward` left at a tensor."""
    assert x.grad is not None
    return x.grad


@dataclass(frozen=True)
class PreparedBatch:
    """A sampled batch with the plan of its rows.

    Attributes:
        step: steps done before it since the start of the run.
        key: of everything random in it.
    """

    batch: Batch
    plan: AccessPlan
    step: int
    key: tuple[int, ...]

    @property
    def dropout_seed(self) -> int:
        """For torch's generator."""
        return int(np.random.SeedSequence((*self.key, 1)).generate_state(1)[0])
